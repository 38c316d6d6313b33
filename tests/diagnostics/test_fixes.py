"""Does every fix mend what it is offered for, and nothing else? The corpus is the failing plan of every page."""

from __future__ import annotations

import pytest

from forgeplan.diagnostics import pages
from forgeplan.diagnostics.diagnostic import Diagnostic, Fix, Safety, Severity
from forgeplan.diagnostics.edits import apply
from forgeplan.diagnostics.source import Sources
from tests.docs.harness import diagnose, files_of, without_markers

CORPUS = {
    code: without_markers(files_of(page, "Fails"))
    for code in pages.all_codes()
    if (page := pages.page(code)) and "Fails" in page.sections
}
Files = dict[str, str]
Found = list[Diagnostic]


@pytest.fixture(scope="session")
def diagnosed() -> dict[str, tuple[Found, Sources]]:
    return {code: diagnose(files) for code, files in CORPUS.items()}


def fixed(files: Files, fixes: list[Fix], sources: Sources) -> Files:
    return {**files, **apply(fixes, {source.name: source.text for source in sources}).texts}


def keys(found: Found) -> set[tuple[str, str]]:
    return {(d.code, d.message) for d in found}


def errors(found: Found) -> set[tuple[str, str]]:
    return keys([d for d in found if d.severity is Severity.ERROR])


@pytest.mark.parametrize("code", CORPUS)
def test_each_fix_alone_takes_its_message_away_and_brings_no_error(
    code: str, diagnosed: dict[str, tuple[Found, Sources]]
) -> None:
    found, sources = diagnosed[code]
    for diagnostic in found:
        for fix in diagnostic.fixes:
            after, _ = diagnose(fixed(CORPUS[code], [fix], sources))
            assert (diagnostic.code, diagnostic.message) not in keys(after), fix
            assert errors(after) <= errors(found), fix


@pytest.mark.parametrize("code", CORPUS)
def test_all_fixes_together_leave_none_of_what_had_one(code: str, diagnosed: dict[str, tuple[Found, Sources]]) -> None:
    files = CORPUS[code]
    found, sources = diagnosed[code]
    mended = {d.code for d in found if d.fixes}
    for _ in range(20):
        fixes = [d.fixes[0] for d in found if d.fixes]
        if not fixes:
            break
        files = fixed(files, fixes, sources)
        found, sources = diagnose(files)
    assert not mended & {d.code for d in found}


def test_fixes_are_offered_for_most_codes(diagnosed: dict[str, tuple[Found, Sources]]) -> None:
    """What is safe keeps the meaning, so that it never concerns what trains."""
    offered = {d.code: d for found, _ in diagnosed.values() for d in found if d.fixes}
    safe = {c for c, d in offered.items() if any(fix.safety is Safety.SAFE for fix in d.fixes)}
    print(f"{len(offered)} of {len(CORPUS)} codes with plans have fixes, {len(safe)} of them safe ones")
    assert {"FP0104", "FP0106", "FP0307", "FP0311", "FP0440"} <= safe
    assert {"FP0412", "FP0501", "FP0505", "FP0407"} <= set(offered) - safe
