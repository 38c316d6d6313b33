"""What becomes of lints: which speak about the text, which are allowed where, and which are errors in this project?

Commands, editor and tests see what comes out of here, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import attrs
from attrs import frozen

from forgeplan.diagnostics.codes import Level
from forgeplan.diagnostics.diagnostic import Diagnostic, Severity
from forgeplan.dsl.load import Loaded
from forgeplan.lints.allows import Allowance, allowances, unneeded
from forgeplan.lints.levels import Levels, read_levels
from forgeplan.lints.restated import RESTATES, restated
from forgeplan.lints.secrets import secrets, texts, without
from forgeplan.lints.unused import unused_names


@frozen
class Judge:
    """The levels of a project and the allowances of the files that were read."""

    levels: Levels
    allowances: tuple[Allowance, ...]
    faults: tuple[Diagnostic, ...]
    """Of `forge.toml`, and keys that stand in a text."""
    keys: tuple[str, ...]
    """Which no message repeats."""

    @classmethod
    def of(cls, loaded: Loaded, unsaved: Mapping[str, str] = {}) -> Judge:
        """`unsaved` has texts of files that an editor has open, by real path."""
        given = tuple(allowances(loaded.sources))
        levels, faults = read_levels(loaded.project, loaded.sources, unsaved)
        found = secrets(loaded.sources)
        return cls(levels, given, (*faults, *found), texts(found, loaded.sources))

    def about_text(self, loaded: Loaded, found: Iterable[Diagnostic]) -> list[Diagnostic]:
        """Lints of the file itself, besides what was found in its plans. A file with errors is not judged by them."""
        found = list(found)
        source = loaded.sources.get(loaded.module.name)
        if source is None:
            return []
        if any(one.severity is Severity.ERROR for one in found):
            return unneeded(self.allowances, found, source, is_whole=False)
        of_text = unused_names(loaded.module.file, source)
        if self._is_all(loaded) and self.levels.of(RESTATES.id) is not Level.ALLOW:
            of_text += restated(loaded, source)
        spoken = [*found, *self.faults, *of_text]
        return of_text + unneeded(self.allowances, spoken, source, is_whole=self._is_all(loaded))

    def _is_all(self, loaded: Loaded) -> bool:
        """Whether there are plans, and all were looked at as the file has them: what is silent now may speak there."""
        asked = loaded.command_line
        return bool(loaded.plans) and loaded.plan is None and not asked.over and not asked.params

    def judged(self, found: Iterable[Diagnostic]) -> list[Diagnostic]:
        """Lints at their level; without those that are allowed."""
        kept = []
        allowed: dict[str, list[Allowance]] = {}
        for allowance in self.allowances:
            allowed.setdefault(allowance.name, []).append(allowance)
        for one in (without(self.keys, one) for one in found):
            level = self.levels.of(one.code)
            if level is None:
                kept.append(one)
            elif level is not Level.ALLOW and not any(a.covers(one) for a in allowed.get(one.code, ())):
                kept.append(self._denied(one) if level is Level.DENY else one)
        return kept

    def _denied(self, one: Diagnostic) -> Diagnostic:
        says = (f'`{one.code} = "deny"` in forge.toml makes it an error',) if one.code in self.levels.by_name else ()
        return attrs.evolve(one, severity=Severity.ERROR, notes=(*one.notes, *says))
