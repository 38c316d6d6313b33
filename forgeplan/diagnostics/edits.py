"""What is a text after some of its fixes? Editors, `lint --fix` and tests apply fixes by this and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import frozen

from forgeplan.diagnostics.diagnostic import Edit, Fix


@frozen
class Applied:
    """The changed texts by file name, the fixes that went in, and those left for another round as they overlap."""

    texts: Mapping[str, str]
    done: tuple[Fix, ...]
    left: tuple[Fix, ...]


def apply(fixes: Iterable[Fix], texts: Mapping[str, str]) -> Applied:
    """Apply fixes in the given order; each goes in whole or not at all.

    A fix that touches what an earlier one changed, or a file that is not in `texts`, is left. Equal edits of two fixes
    are one edit.
    """
    taken: list[Edit] = []
    done, left = [], []
    for fix in dict.fromkeys(fixes):
        fresh = [edit for edit in fix.edits if edit not in taken]
        fits = all(edit.span.file in texts for edit in fix.edits)
        if fits and not any(_collide(new, old) for new in fresh for old in taken):
            taken += fresh
            done.append(fix)
        else:
            left.append(fix)
    changed = {file: _changed(texts[file], [e for e in taken if e.span.file == file]) for file in _files(taken)}
    return Applied(changed, tuple(done), tuple(left))


def _files(edits: Iterable[Edit]) -> list[str]:
    return list(dict.fromkeys(edit.span.file for edit in edits))


def _collide(a: Edit, b: Edit) -> bool:
    """Whether two edits change the same characters, or insert at the same place."""
    if a.span.file != b.span.file:
        return False
    if a.span.start == a.span.end or b.span.start == b.span.end:
        return a.span.start <= b.span.end and b.span.start <= a.span.end
    return a.span.start < b.span.end and b.span.start < a.span.end


def _changed(text: str, edits: list[Edit]) -> str:
    for edit in sorted(edits, key=lambda e: e.span, reverse=True):
        text = text[: edit.span.start] + edit.replacement + text[edit.span.end :]
    return text
