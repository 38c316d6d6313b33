"""What are plan files after their fixes? Round by round, as one makes room for another, and never worse than before.

A fix is kept only if it leaves no more errors than there were, in any of the files that are checked.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from attrs import define, field, frozen

from forgeplan.cli.files import as_text, read_bytes, write_bytes
from forgeplan.cli.plan_file import Choice
from forgeplan.diagnostics.diagnostic import Diagnostic, Fix, Safety
from forgeplan.diagnostics.edits import apply
from forgeplan.diagnostics.refusal import UsageError
from forgeplan.diagnostics.report import is_file

if TYPE_CHECKING:
    from forgeplan.analysis import Analysis

MOST_ROUNDS = 20
"""Every round applies a fix, and one that makes room for itself again would go on for ever."""


@frozen
class Done:
    """A fix that went in: the files it changed, and the message that offered it."""

    files: tuple[str, ...]
    fix: Fix
    found: Diagnostic


@define
class Fixing:
    """Plan files with their texts, on the way to texts with fewer faults. Nothing is written before `write`."""

    files: tuple[str, ...]
    unsafe: bool
    before: dict[str, str] = field(factory=dict)
    """The texts of changed files as they were, by the names that spans use."""
    texts: dict[str, str] = field(factory=dict)
    done: list[Done] = field(factory=list)
    _refused: set[Fix] = field(factory=set)

    def run(self) -> dict[str, Analysis]:
        """Apply fixes until none is left that helps. The analyses of the files as they are then."""
        now = self._analysed(self.texts)
        for _ in range(MOST_ROUNDS):
            offered = self._offered(now)
            if not offered:
                break
            now = self._round(now, offered) or now
        return now

    def write(self) -> None:
        """Raises UsageError for a file that cannot be written, or is another by now; those before it are written."""
        for name in self.changed:
            if as_text(read_bytes(name), name) != self.before[name]:
                raise UsageError(f"{name} was changed by somebody else meanwhile, and is left as it is")
            write_bytes(name, self.texts[name].encode("utf-8"))

    @property
    def changed(self) -> list[str]:
        return [name for name, text in self.texts.items() if text != self.before[name]]

    def difference(self, name: str) -> str:
        """What changes in a file, as a unified diff; its lines end as those of the file."""
        before, after = (texts[name].split("\n") for texts in (self.before, self.texts))
        return "\n".join(difflib.unified_diff(before, after, name, f"{name} (fixed)", lineterm=""))

    def _round(self, now: Mapping[str, Analysis], offered: list[tuple[Fix, Diagnostic]]) -> dict[str, Analysis] | None:
        """One fix of each message, all together where that is no worse, else one after another until one is kept."""
        texts = self._known_texts(now, (fix for fix, _ in offered))
        together = self._tried(dict(offered), texts, now)
        if together is not None:
            return together
        for fix, found in offered:
            alone = self._tried({fix: found}, texts, now)
            if alone is not None:
                return alone
            self._refused.add(fix)
        return None

    def _offered(self, now: Mapping[str, Analysis]) -> list[tuple[Fix, Diagnostic]]:
        """The first fix of each message that may be applied and was not refused."""
        found = dict.fromkeys(d for analysis in now.values() for d in analysis.diagnostics)
        project = {file: str(Choice(file).project) for file in self.files}
        offered = []
        for diagnostic in found:
            fitting = (fix for fix in diagnostic.fixes if self._allowed(fix, project.values()))
            fix = next((fix for fix in fitting if fix not in self._refused), None)
            if fix is not None:
                offered.append((fix, diagnostic))
        return offered

    def _allowed(self, fix: Fix, projects: Iterable[str]) -> bool:
        """Whether a fix may be applied unasked, and touches nothing but plan files of these projects."""
        is_asked_for = self.unsafe or fix.safety is Safety.SAFE
        return is_asked_for and of_plans(fix) and all(_inside(edit.span.file, projects) for edit in fix.edits)

    def _known_texts(self, now: Mapping[str, Analysis], fixes: Iterable[Fix]) -> dict[str, str]:
        """The texts that fixes change, if they are what the files hold."""
        texts = {}
        for name in dict.fromkeys(edit.span.file for fix in fixes for edit in fix.edits):
            source = next((s for a in now.values() if (s := a.sources.get(name))), None)
            if source is not None:
                texts[name] = source.text
                self.before.setdefault(name, as_text(read_bytes(name), name))
        return {name: text for name, text in texts.items() if text == self.texts.get(name, self.before[name])}

    def _tried(
        self, fixes: Mapping[Fix, Diagnostic], texts: Mapping[str, str], now: Mapping[str, Analysis]
    ) -> dict[str, Analysis] | None:
        """The analyses after these fixes, which are then kept; None if none fits or there would be more errors."""
        applied = apply(fixes, texts)
        changed = {name: text for name, text in applied.texts.items() if text != texts[name]}
        if not changed:
            return None
        after = self._analysed({**self.texts, **changed})
        if _worse(now, after, {fixes[fix] for fix in applied.done}):
            return None
        self.texts.update(changed)
        for fix in applied.done:
            names = dict.fromkeys(edit.span.file for edit in fix.edits)
            self.done.append(Done(tuple(names), fix, fixes[fix]))
        return after

    def _analysed(self, texts: Mapping[str, str]) -> dict[str, Analysis]:
        unsaved = {str(Path(name).resolve()): text for name, text in texts.items()}
        return {file: Choice(file).analysed(unsaved) for file in self.files}


def of_plans(fix: Fix) -> bool:
    """Whether a fix changes plan files alone: what `forge.lock` pins is accepted by `forgeplan lock` only."""
    return all(is_file(edit.span.file) and edit.span.file.endswith(".forge") for edit in fix.edits)


def _worse(now: Mapping[str, Analysis], after: Mapping[str, Analysis], mended: Iterable[Diagnostic]) -> bool:
    """Whether some file has more errors than before, or a new one of a kind that the fixes ought to have known of.

    A text that can be read shows for the first time what its values break; that was there before. Also where nothing
    of what was to be mended is gone.
    """
    codes = {found.code for found in mended}
    known = max(map(_family, codes))
    for file, analysis in after.items():
        new = Counter(_key(d) for d in analysis.errors) - Counter(_key(d) for d in now[file].errors)
        if len(analysis.errors) > len(now[file].errors) or any(_family(code) <= known for code, _ in new):
            return True
    return not any(_count(now[file], codes) > _count(analysis, codes) for file, analysis in after.items())


def _key(found: Diagnostic) -> tuple[str, str]:
    return found.code, found.message


def _family(code: str) -> int:
    """1 for syntax, 2 for names, … as in the codes; lints come last."""
    return int(code[2:4]) if code.startswith("FP") else 99


def _count(analysis: Analysis, codes: set[str]) -> int:
    return sum(found.code in codes for found in analysis.diagnostics)


def _inside(file: str, projects: Iterable[str]) -> bool:
    path = Path(file).resolve()
    return any(path.is_relative_to(project) for project in projects)
