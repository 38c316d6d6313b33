"""Is the page of a code found, and is it readable on a terminal?"""

from __future__ import annotations

from textwrap import dedent

import pytest

from forgeplan.diagnostics import pages

TEXT = """# FP0999: tests are read

A rule made up for a test, whose reason is long enough to go over the end of a line, and
holds `a word of code`.

* one thing
* another thing that is long enough to go
  over the end of a line as well

## Fails

```forge
seed = -1,   mesh = {}  # error[FP0999]: below 0
```

behind it

## Passes

```forge
seed = 1
```

## Command line

```text
$ forgeplan lint plan.forge
```
"""


def test_a_page_has_the_parts_that_its_headings_name() -> None:
    page = pages.parse(TEXT)
    assert (page.code, page.rule, page.title) == ("FP0999", "tests are read", "FP0999: tests are read")
    assert page.reason.startswith("A rule made up")
    assert page.fails == "seed = -1,   mesh = {}  # error[FP0999]: below 0\n"
    assert page.passes == "seed = 1\n"
    assert (page.when, page.then) == ("", "")
    assert "$ forgeplan lint" in page.command_line


def test_a_section_may_show_several_files() -> None:
    page = pages.parse("# a-lint: b\n\nc\n\n## Fails\n\n```forge\nx\n```\n\n```forge lib/y.forge\ny\n```\n")
    assert page.files("Fails") == {"": "x\n", "lib/y.forge": "y\n"}


def test_a_text_without_title_is_no_page() -> None:
    with pytest.raises(ValueError, match="`# CODE: rule`"):
        pages.parse("FP0999 tests")


def test_prose_is_wrapped_and_plans_are_kept() -> None:
    expected = """
        FP0999: tests are read

        A rule made up for a test, whose reason
        is long enough to go over the end of a
        line, and holds `a word of code`.

        * one thing
        * another thing that is long enough to
          go over the end of a line as well

        Fails

          seed = -1,   mesh = {}
          # error[FP0999]: below 0

        behind it

        Passes

          seed = 1

        Command line

          $ forgeplan lint plan.forge
        """
    assert pages.render(pages.parse(TEXT), 40) == dedent(expected).strip("\n")


def test_colours_change_nothing_but_colours() -> None:
    plain, colored = (pages.render(pages.parse(TEXT), 60, color) for color in (False, True))
    assert "\x1b" not in plain
    for style in ("1", "36", "1;31"):
        assert f"\x1b[{style}m" in colored
        colored = colored.replace(f"\x1b[{style}m", "")
    assert colored.replace("\x1b[0m", "") == plain


@pytest.mark.parametrize("name", ["FP0401", "fp0401"])
def test_a_code_is_found_in_either_case_of_letters(name: str) -> None:
    page = pages.page(name)
    assert page is not None
    assert page.code == "FP0401"
    assert pages.looks_like_code(name)


def test_a_lint_is_found_by_its_name() -> None:
    page = pages.page("unusual-rate")
    assert page is not None
    assert page.rule == "learning rate and warm-up are such as published runs use"


@pytest.mark.parametrize("name", ["FP9999", "", "../FP0401", "README", "plans/debug.forge"])
def test_what_is_no_code_has_no_page(name: str) -> None:
    assert pages.page(name) is None


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("FP401", "FP0401"),
        ("FP0411", "FP0412"),
        ("fp9401", "FP0401"),
        ("fp04011", "FP0401"),
        ("unusal-rate", "unusual-rate"),
    ],
)
def test_the_code_that_was_likely_meant_is_offered(typed: str, meant: str) -> None:
    assert meant in pages.similar(typed)


def test_nothing_is_offered_for_what_is_like_no_code() -> None:
    assert pages.similar("wombat") == ()


def test_a_file_is_not_taken_for_a_code() -> None:
    assert not pages.looks_like_code("plans/debug.forge")
    assert pages.looks_like_code("FP9999")
