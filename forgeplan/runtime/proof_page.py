"""What does a person read of a proof while it is made?"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from attrs import frozen

from forgeplan.diagnostics.paint import Paint
from forgeplan.plan.proof import Changed, Proof, Trial
from forgeplan.runtime.certificate import DEVIATES, FAILED, PROVEN
from forgeplan.runtime.selftest.report import measured

if TYPE_CHECKING:
    from forgeplan.runtime.prove import Tried

_INDENT = 12
MOST_NAMED = 8
"""Of what differs in a trial."""


@frozen
class Page:
    """Text for a place with so many columns."""

    proof: Proof
    width: int
    paint: Paint

    def opening(self) -> str:
        """What is to be proven."""
        plan = self.proof.plan
        ranks = f"{plan.mesh.world:,} rank{'s' * (plan.mesh.world > 1)}"
        where = ranks + (f" ({plan.mesh.describe()})" if plan.mesh.world > 1 else "")
        return f"{plan.name}: {plan.estimates.num_parameters:,} parameters on {where}, plan {plan.meaning[:12]}"

    def trial(self, number: int, trial: Trial) -> str:
        """The trial that begins, and how small it is."""
        plan, total = trial.plan, len(self.proof.trials)
        processes = "one process" if plan.mesh.world == 1 else f"{plan.mesh.world} processes"
        layout = f"{plan.mesh.describe()} on {processes}" if plan.mesh.world > 1 else processes
        head = f"trial {number} of {total}: {layout}, {plan.steps} steps in {plan.job.precision.params}"
        return "\n".join([self.paint(head, "title"), *self._item("smaller", _changes(trial.shrunk))])

    def result(self, result: Tried) -> str:
        """How a trial ended, with the tensor that tells most."""
        telling, seconds = result.telling, f"{result.seconds:.1f} s"
        if telling is None:
            return "\n".join(self._item(FAILED, f"{result.reason}, after {seconds}"))
        found = f"{measured(telling)}, {telling.what}; {seconds}"
        if result.verdict == PROVEN:
            return "\n".join(self._item("same", f"largest deviation {found}"))
        wrong = [d.what for d in sorted(result.deviations, key=attrgetter("excess"), reverse=True) if not d.is_same]
        others = [what for what in wrong if what != telling.what]
        more = len(others) - MOST_NAMED
        named = ", ".join(others[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
        lines = self._item("differs", found)
        return "\n".join([*lines, *(self._item("also", named) if named else [])])

    def closing(self, certificate: dict[str, Any]) -> str:
        """What was changed and left out in all trials, and the verdict."""
        by_reason = groupby(self.proof.replaced, key=attrgetter("why"))
        lines = [line for why, found in by_reason for line in self._item("replaced", f"{_changes(found)}: {why}")]
        lines += [line for left in self.proof.left_out for line in self._item("left out", f"{left.what}: {left.why}")]
        return "\n".join([*lines, "", _verdict(certificate, len(self.proof.trials))])

    def _item(self, word: str, text: str) -> list[str]:
        lines = wrap(text, self.width - _INDENT, break_long_words=False, break_on_hyphens=False) or [""]
        return [f"{word if i == 0 else '':{_INDENT}}{line}".rstrip() for i, line in enumerate(lines)]


def _changes(changes: Iterable[Changed]) -> str:
    return ", ".join(f"{change.path} {change.was} → {change.now or 'left out'}" for change in changes)


def _verdict(certificate: dict[str, Any], num_trials: int) -> str:
    verdict, largest = certificate["verdict"], certificate["largest_deviation"]
    if verdict == PROVEN:
        trials = "the trial trains" if num_trials == 1 else f"all {num_trials} trials train"
        return f"proven: {trials} what one process trains, within {largest['value']:.1e}"
    start = {DEVIATES: "not proven, the plan trains something else", FAILED: "not proven, a rank failed"}[verdict]
    return f"{start}: {certificate['summary']}"
