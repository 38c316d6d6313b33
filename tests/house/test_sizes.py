"""Does every file and every function fit into a reader's head?"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from statistics import median, quantiles

import pytest

from tests.house.tree import ROOT, files

FOLDERS = ("forgeplan", "tests", "benchmarks")
SOURCES = [path for folder in FOLDERS for path in files(f"{folder}/*.py") if path.stat().st_size]


def _lines(path: Path) -> int:
    return len(path.read_text(encoding="utf-8").splitlines())


def _functions(path: Path) -> Iterator[tuple[str, int]]:
    """Every function of a file with its length from `def` to its last line, decorators left out."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield (
                f"{path.relative_to(ROOT)}:{node.lineno} {node.name}",
                (node.end_lineno or node.lineno) - node.lineno + 1,
            )


def _percentile_95(sizes: list[int]) -> float:
    return quantiles(sizes, n=20)[-1]


def test_half_of_all_files_have_150_lines_or_fewer_and_almost_all_400() -> None:
    sizes = [_lines(path) for path in SOURCES]
    assert median(sizes) <= 150
    assert _percentile_95(sizes) <= 400


def test_no_file_has_more_than_600_lines() -> None:
    assert [(str(p.relative_to(ROOT)), n) for p in SOURCES if (n := _lines(p)) > 600] == []


def test_almost_all_functions_have_40_lines_or_fewer_and_none_more_than_80() -> None:
    functions = [found for path in SOURCES for found in _functions(path)]
    assert _percentile_95([lines for _, lines in functions]) <= 40
    assert [(name, lines) for name, lines in functions if lines > 80] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_first_line_of_a_file_asks_the_question_that_it_answers(folder: str) -> None:
    without = []
    for path in files(f"{folder}/*.py"):
        text = path.read_text(encoding="utf-8")
        if text.strip() and not (ast.get_docstring(ast.parse(text)) or ""):
            without.append(str(path.relative_to(ROOT)))
    assert without == []
