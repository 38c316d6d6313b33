"""Does every text get an answer: a tree or diagnostics, in its time, and never an exception?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from forgeplan.analysis import analyse
from forgeplan.diagnostics.formats import render_all
from forgeplan.diagnostics.refusal import UsageError
from tests.dsl.fuzzing import SECONDS, TooSlow, fuzz, inputs, time_limit

IN_EVERY_RUN = 10_000
IN_SLOW_RUNS = 100_000


@pytest.mark.parametrize("part", range(4))
def test_ten_thousand_changed_plans_are_read_in_their_time_without_exception(part: int) -> None:
    share = IN_EVERY_RUN // 4
    found = fuzz(part * share, share)
    assert found["parsed"] > share // 5
    assert found["refused"] > share // 5


@pytest.mark.slow
@pytest.mark.timeout(3_000)
@pytest.mark.parametrize("part", range(4))
def test_a_hundred_thousand_more_are_too(part: int) -> None:
    share = IN_SLOW_RUNS // 4
    fuzz(IN_EVERY_RUN + part * share, share)


def test_an_input_depends_on_its_number_alone() -> None:
    assert [*inputs(40, 20)][10] == next(inputs(50, 1))
    assert len({given.text for given in inputs(0, 200)}) > 150


def test_what_takes_too_long_is_stopped() -> None:
    with pytest.raises(TooSlow), time_limit(0.05):
        any(number < 0 for number in count())


HEAD = "forge 1\nplan p {\n"


def nested(opener: str, closer: str, levels: int) -> str:
    return f"{HEAD}  seed = {opener * levels}1{closer * levels}\n}}\n"


HUGE: dict[str, Callable[[], str]] = {
    "a string of a megabyte without end": lambda: f'{HEAD}  seed = "' + 'a\\"${' * 200_000,
    "a megabyte of openings in a string": lambda: f'{HEAD}  seed = "' + "${" * 500_000,
    "a megabyte of strings in strings": lambda: f"{HEAD}  seed = " + '"${' * 350_000,
    "a block string of a megabyte without end": lambda: f'{HEAD}  seed = """' + 'a\\"${ "x" }\n' * 80_000,
    "a megabyte of quotes": lambda: f"{HEAD}  seed = " + '"' * 1_000_000,
    "a megabyte of quotes, one a line": lambda: HEAD + '  seed = "\n' * 80_000,
    "a megabyte of backslashes": lambda: f'{HEAD}  seed = "' + "\\" * 1_000_000,
    **{
        f"{levels:,} levels of {opener}": lambda o=opener, c=closer, n=levels: nested(o, c, n)
        for opener, closer in (("(", ")"), ("[", "]"), ("{a=", "}"), ("adamw {a=", "}"), ("f(", ")"), ("[[0]", "]"))
        for levels in (10_000, 100_000)
    },
    **{
        f"{levels:,} openings of {opener} alone": lambda o=opener, n=levels: HEAD + "  seed = " + o * n
        for opener in ("(", "[", "{", "{a={", "[(", "plan p {")
        for levels in (10_000, 100_000)
    },
    **{
        f"{levels:,} times {piece}": lambda p=piece, n=levels: f"{HEAD}  seed = {p * n}1\n}}\n"
        for piece in ("not ", "-", "+-", "1 + ", "2 ** ", "1 < ", "a.", "if 1 then 1 else ", "if ", "1 .. ", "a and ")
        for levels in (10_000, 100_000)
    },
    **{
        f"{levels:,} times {piece} behind": lambda p=piece, n=levels: f"{HEAD}  seed = a{p * n}\n}}\n"
        for piece in ("()", "[0]", " {}", ".x", "%", " )", " ]", " }", ",", " =", " 1")
        for levels in (10_000, 100_000)
    },
    "towers of powers": lambda: f"{HEAD}  seed = 10 ** 10 ** 10\n  let a = (9 ** 99) ** 99 ** 9\n}}\n",
    "a number of a megabyte": lambda: f"{HEAD}  seed = {'9' * 1_000_000}\n}}\n",
    "a number of a megabyte in groups": lambda: f"{HEAD}  seed = {'9_' * 500_000}\n}}\n",
    "an exponent of a megabyte": lambda: f"{HEAD}  seed = 1e{'9' * 1_000_000}\n}}\n",
    "a name of a megabyte": lambda: f"{HEAD}  {'a' * 1_000_000} = 1\n}}\n",
    "a word of letters outside of ASCII": lambda: f"{HEAD}  {'ü' * 1_000_000} = 1\n}}\n",
    "a key of a thousand names, and the next, and the next": lambda: (
        HEAD + "".join(f"  {'a.' * 1_000}b{i} = 1\n" for i in range(200)) + "}\n"
    ),
    "a megabyte of what starts no token": lambda: HEAD + "§" * 1_000_000,
    "a line of invisible characters": lambda: HEAD + "\u200b" * 250_000,
    "invisible characters apart": lambda: HEAD + "\u200b " * 30_000,
    "a comment of a megabyte": lambda: "forge 1\n# " + "x" * 1_000_000 + "\n",
    "comments on all lines": lambda: "forge 1\n" + "# forge: allow a, b\n" * 2_000 + "plan p {}\n",
    "doc comments on all lines": lambda: "forge 1\n" + "## doc\n" * 50_000 + "plan p {}\n",
    "only newlines": lambda: "\n" * 1_000_000,
    "only spaces": lambda: " " * 1_000_000,
    "NUL bytes": lambda: "\0" * 1_000_000,
    "only carriage returns": lambda: f"{HEAD}  seed = 1\n}}\n".replace("\n", "\r") * 1_000,
    "line separators": lambda: f"{HEAD}  seed = 1\n}}\n".replace("\n", "\u2028"),
    "lone surrogates": lambda: f'{HEAD}  seed = "\ud800\udfff\udc80"\n  \ud800 = 1\n}}\n',
    "many byte order marks": lambda: "\ufeff" * 3 + "forge 1\n",
    "a megabyte that may be keys": lambda: HEAD + '  seed = "' + "-----BEGIN PRIVATE KEY ://a:b" * 36_000 + '"\n}\n',
    "five thousand keys": lambda: HEAD + "".join(f'  a{i} = "glpat-{i:020}"\n' for i in range(5_000)) + "}\n",
    "ten thousand plans": lambda: "forge 1\n" + "".join(f"partial plan p{i} {{}}\n" for i in range(10_000)),
    "ten thousand values of a list": lambda: f"{HEAD}  let a = [{'1, ' * 10_000}]\n  seed = len(a)\n}}\n",
    "nothing": lambda: "",
    "a mark alone": lambda: "\ufeff",
}
"""Texts that once hung, exhausted the stack or filled the memory of one reader of configurations or another."""

MEGABYTES = 500
"""Of memory for all of these, one after the other."""

READER = """
import json, resource, sys, time
from forgeplan.analysis import analyse
from forgeplan.analysis import analyse
from forgeplan.diagnostics.refusal import UsageError
from forgeplan.diagnostics.formats import render_all
from tests.dsl.test_fuzz import HUGE
analyse("plans/x.forge", text="forge 1\\nplan p {}\\n")  # tables and schema are there from now on
for name in sys.argv[1:]:
    text = HUGE[name]()
    began = time.process_time()
    analysis = analyse("plans/x.forge", text=text)
    read = time.process_time()
    shown = render_all(analysis.diagnostics, analysis.sources)
    seconds, rendering = read - began, time.process_time() - read
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    codes = [d.code for d in analysis.diagnostics]
    print(json.dumps([name, len(text), seconds, rendering, megabytes, codes]), flush=True)
"""


def answers(names: list[str]) -> list[tuple[str, int, float, float, float, list[str]]]:
    """What a process of its own says of these texts."""
    said = subprocess.run(
        [sys.executable, "-c", READER, *names], capture_output=True, text=True, timeout=240, env={**os.environ}
    )
    assert said.returncode == 0, said.stderr[-2_000:]
    return [tuple(json.loads(line)) for line in said.stdout.splitlines()]


def expect_in_time(names: list[str]) -> None:
    found = answers(names)
    assert [name for name, *_ in found] == names
    for name, size, seconds, rendering, megabytes, _ in found:
        limit = SECONDS * max(1.0, size / 2**20) * 2  # processors that are shared are slower than they say
        assert seconds <= limit, (name, seconds)
        assert rendering <= limit, (name, rendering)
        assert megabytes <= MEGABYTES, (name, megabytes)


def test_huge_and_hostile_texts_are_answered_in_a_second_and_half_a_gigabyte() -> None:  # C002, C009
    expect_in_time([name for name in HUGE if not name.startswith("100,000")])


@pytest.mark.slow
def test_ten_times_as_many_levels_are_too() -> None:  # C002
    expect_in_time([name for name in HUGE if name.startswith("100,000")])


@pytest.mark.parametrize("value", ["(", "[", "{a=", "not ", "1 + ", "if 1 then 1 else "])
def test_what_is_too_deep_is_told_by_the_name_of_the_bound(value: str) -> None:  # C002
    found = analyse("plans/x.forge", text=f"{HEAD}  seed = {value * 10_000}1\n}}\n").diagnostics
    assert "FP0112" in [d.code for d in found]


def test_of_a_text_full_of_faults_the_first_thousand_are_told() -> None:
    for wrong in ("§ ", ") ", "x = = 1\n", '"\n', "\u200b "):
        found = analyse("plans/x.forge", text=HEAD + wrong * 1_500 + "}\n").diagnostics
        told = [d for d in found if d.code == "FP0112"]
        assert [d.message for d in told] == [
            "the text has more than 1,000 faults, and what stands from here on is not read"
        ]
        assert len(found) == 1_001
        assert found[-1] is told[0]


NO_TEXT = {
    "UTF-16": "forge 1\nlet a = 1\n".encode("utf-16"),
    "Latin-1": "forge 1\n# Grüße\nlet a = 1\n".encode("latin-1"),
    "half a character": 'forge 1\nlet a = "名'.encode()[:-1],
    "an encoded surrogate": b'forge 1\nlet a = "\xed\xa0\x80"\n',
    "too long an encoding": b"forge 1\nlet a = \xc0\xafx\n",
    "any bytes": bytes(range(256)) * 40,
    "a compressed file": b"\x1f\x8b\x08\0" + bytes(255 - i for i in range(256)) * 4,
}


@pytest.mark.parametrize("name", NO_TEXT)
def test_a_file_that_is_no_text_is_refused_with_the_place(tmp_path: Path, name: str) -> None:
    path = tmp_path / "x.forge"
    path.write_bytes(NO_TEXT[name])
    with pytest.raises(UsageError, match="is not UTF-8 text: byte"):
        analyse(str(path))
    (tmp_path / "y.forge").write_text('forge 1\nimport "x.forge" as x\n')
    assert [d.code for d in analyse(str(tmp_path / "y.forge")).diagnostics] == ["FP0204"]


def test_nul_bytes_get_diagnostics_that_show_none(tmp_path: Path) -> None:
    path = tmp_path / "x.forge"
    path.write_bytes(b"forge 1\n\0\0let a = 1\0\n")
    analysis = analyse(str(path))
    assert [d.code for d in analysis.diagnostics if d.code == "FP0111"] == ["FP0111", "FP0111"]
    assert "\0" not in render_all(analysis.diagnostics, analysis.sources)


def test_a_byte_order_mark_and_windows_line_ends_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "x.forge"
    path.write_bytes(b"\xef\xbb\xbfforge 1\r\n\r\npartial plan a {\r\n  seed = 1\r\n}\r\n")
    assert analyse(str(path)).diagnostics == ()


def test_old_line_ends_are_no_lines(tmp_path: Path) -> None:
    (tmp_path / "x.forge").write_bytes(b"forge 1\rpartial plan a {\r  seed = 1\r}\r")
    assert analyse(str(tmp_path / "x.forge")).errors


def chain(length: int) -> dict[str, str]:
    """Files that import one another in turn."""
    return {f"f{i}": f'import "f{i + 1}.forge" as next\nlet v = next.v\n' for i in range(length)}


def doubling(levels: int) -> dict[str, str]:
    """Two files a level, each importing both of the next: 2 ** levels ways through."""
    return {
        f"{side}{i}": f'import "a{i + 1}.forge" as a\nimport "b{i + 1}.forge" as b\nlet v = a.v + b.v\n'
        for i in range(levels)
        for side in "ab"
    } | {f"{side}{levels}": "let v = 1\n" for side in "ab"}


BOMBS: dict[str, dict[str, str]] = {
    "a chain of 2,000 files": {"main": 'import "f0.forge" as f\n', **chain(2_000)},
    "2,000 files beside each other": {
        "main": "".join(f'import "f{i}.forge" as f{i}\n' for i in range(2_000)),
        **{f"f{i}": "let v = 1\n" for i in range(2_000)},
    },
    "a cycle": {"main": 'import "a.forge" as a\n', "a": 'import "b.forge" as b\n', "b": 'import "main.forge" as m\n'},
    "itself": {"main": 'import "main.forge" as m\nlet v = m.v\n'},
    "a diamond that doubles": {"main": 'import "a0.forge" as a\nlet v = a.v\n', **doubling(14)},
    "the same file 2,000 times": {
        "main": "".join(f'import "f.forge" as f{i}\n' for i in range(2_000)),
        "f": "let v = 1\n",
    },
    "plans that extend each other across files": {
        "main": 'from "a.forge" import a\npartial plan b extends a {}\n',
        "a": 'from "main.forge" import b\npartial plan a extends b {}\n',
    },
}


@pytest.mark.parametrize("name", BOMBS)
def test_imports_without_end_are_answered_in_a_second(tmp_path: Path, name: str) -> None:
    for file, text in BOMBS[name].items():
        (tmp_path / f"{file}.forge").write_text(f"forge 1\n{text}")
    with time_limit(2 * SECONDS):
        analysis = analyse(str(tmp_path / "main.forge"))
        render_all(analysis.diagnostics, analysis.sources)
    is_fine = not analysis.errors
    assert is_fine == (name in ("a diamond that doubles", "the same file 2,000 times"))
