"""Does every code have a page, and does every page tell what the compiler does?"""

from __future__ import annotations

import importlib
import pkgutil
import re
import shlex

import pytest

import forgeplan
from forgeplan.diagnostics import pages
from forgeplan.diagnostics.codes import Code, registered
from forgeplan.resources import resource
from tests.docs.harness import announced, files_of, reported, unmatched

PAGES = {code: page for code in pages.all_codes() if (page := pages.page(code))}
WITH_PLANS = {code: page for code, page in PAGES.items() if "Fails" in page.sections}
WITHOUT_PLANS = {code: page for code, page in PAGES.items() if "Fails" not in page.sections}
COMMANDS = [(code, line) for code, page in PAGES.items() for line in re.findall(r"(?m)^\$ (.+)", page.command_line)]

_WIDEST = 180  # a message stands on one line; prose is far narrower


@pytest.fixture(scope="session")
def codes() -> dict[str, Code]:
    """Every code that any module declares."""
    for module in pkgutil.walk_packages(forgeplan.__path__, "forgeplan."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    return registered()


def test_every_code_has_a_page_and_every_page_a_code(codes: dict[str, Code]) -> None:
    assert sorted(set(codes) - set(PAGES)) == []
    assert sorted(set(PAGES) - set(codes)) == []


def test_the_title_of_a_page_is_the_rule_of_its_code(codes: dict[str, Code]) -> None:
    assert {c: p.rule for c, p in PAGES.items()} == {c: codes[c].rule for c in PAGES if c in codes}


@pytest.mark.parametrize("code", PAGES)
def test_a_page_is_named_by_its_code_and_gives_a_reason(code: str) -> None:
    assert PAGES[code].code == code
    assert len(PAGES[code].reason) > 40
    expected = ["Fails", "Passes"] if code in WITH_PLANS else ["When", "Then"]
    assert [name for name in PAGES[code].sections if name != "Command line"] == expected
    assert all(PAGES[code].sections.values())


def test_pages_are_no_wider_than_the_plans_in_them() -> None:
    for code in PAGES:
        title, *lines = resource(f"docs/diagnostics/{code}.md").read_text(encoding="utf-8").splitlines()
        assert title == f"# {PAGES[code].title}"
        assert [line for line in lines if len(line) > _WIDEST] == []


@pytest.mark.parametrize("code", WITH_PLANS)
def test_the_failing_plan_reports_what_its_lines_announce_and_nothing_else(code: str) -> None:
    files = files_of(WITH_PLANS[code], "Fails")
    said = announced(files)
    assert code in {one.code for one in said}
    assert unmatched(said, reported(files)) == []


@pytest.mark.parametrize("code", WITH_PLANS)
def test_the_passing_plan_is_without_fault(code: str) -> None:
    assert reported(files_of(WITH_PLANS[code], "Passes")) == []


@pytest.mark.parametrize(("code", "line"), COMMANDS, ids=[f"{code}-{line}" for code, line in COMMANDS])
def test_the_command_line_of_a_page_breaks_its_rule_on_the_passing_plan(code: str, line: str) -> None:
    program, _, _, *options = shlex.split(line)
    assert program == "forgeplan"
    assert set(options[::2]) == {"--set"}
    found = reported(files_of(PAGES[code], "Passes"), overrides=tuple(options[1::2]))
    assert [(one.severity, one.code) for one in found] == [("error", code)]


@pytest.mark.parametrize("code", WITHOUT_PLANS)
def test_a_refusal_shown_on_a_page_is_the_one_of_the_page(code: str) -> None:
    shown = re.findall(r"(?m)^\s*(?:error\[)?(FP\d{4})\]?:", WITHOUT_PLANS[code].then)
    assert set(shown) <= {code}


@pytest.mark.parametrize("code", sorted(set(PAGES) - {"FP0112"}))  # its plan needs 65 brackets on a line
def test_a_page_fits_a_terminal_of_80_cells(code: str) -> None:
    for line in pages.render(PAGES[code], 80).splitlines():
        assert len(line) <= 80
        assert line == line.rstrip()
