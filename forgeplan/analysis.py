"""From files to checked jobs: the language and the compiler together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs
from attrs import field, frozen

from forgeplan.compiler import check, check_together, derived_values
from forgeplan.diagnostics.diagnostic import Diagnostic, Severity
from forgeplan.diagnostics.source import Sources
from forgeplan.dsl.load import Loaded, load
from forgeplan.dsl.testblocks import TestResult, run_test
from forgeplan.dsl.writing import Writer
from forgeplan.lints.judge import Judge
from forgeplan.plan.operations import OPERATIONS
from forgeplan.spec.job import Job


@frozen
class Analysis:
    """A plan file, resolved and checked in every view."""

    loaded: Loaded
    diagnostics: tuple[Diagnostic, ...]
    """Of language and compiler, sorted; one that shows in several views stands once."""
    _of_file: tuple[Diagnostic, ...] = field(eq=False, repr=False)
    """What is found in no view: of the text, its imports, and `forge.toml`."""
    _of_views: Mapping[int, tuple[Diagnostic, ...]] = field(eq=False, repr=False)
    """By the identity of a view's job: what was found in it."""

    @property
    def sources(self) -> Sources:
        return self.loaded.sources

    @property
    def plans(self) -> tuple[str, ...]:
        return self.loaded.plans

    @property
    def jobs(self) -> tuple[Job, ...]:
        """The chosen plan, or all plans, in the chosen profile; then the sweep cells."""
        return self.loaded.jobs

    def job(self, plan: str, profile: str | None = None, cell: str | None = None) -> Job:
        """One view. Raises KeyError for a plan or cell that does not exist."""
        return self.loaded.job(plan, profile, cell)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(d for d in self.diagnostics if d.severity is Severity.ERROR)

    def concerning(self, job: Job) -> tuple[Diagnostic, ...]:
        """Those of the whole file and of one view; what another profile or sweep cell breaks is not its concern."""
        return once([*self._of_file, *self._of_views[id(job)]])


def analyse(
    path: str,
    *,
    overrides: Sequence[str] = (),
    profile: str | None = None,
    plan: str | None = None,
    text: str | None = None,
    unsaved: Mapping[str, str] = {},
) -> Analysis:
    """Read, resolve and check a plan file; faults are in `diagnostics`. Raises UsageError for an unreadable file."""
    derived = derived_values()
    loaded = load(path, text, derived=derived, overrides=overrides, profile=profile, plan=plan, unsaved=unsaved)
    judge = Judge.of(loaded, unsaved)
    found = list(loaded.diagnostics)
    of_views = {}
    for view in loaded.resolved():
        faults = check(view.job, Writer(loaded.module.file, loaded.sources, view.job, tuple(OPERATIONS)))
        explained = any(d.severity is Severity.ERROR for d in (*faults, *view.faults))
        faults = faults if explained or view.job.plan is not None else [*faults, *view.unclaimed]
        found += faults
        of_views[id(view.job)] = tuple(judge.judged([*view.faults, *faults]))
    found += check_together(loaded.views)
    of_text = judge.judged([*judge.faults, *judge.about_text(loaded, found)])
    in_views = {without_view(d) for view in loaded.resolved() for d in view.faults}
    of_file = (d for d in loaded.diagnostics if without_view(d) not in in_views)
    return Analysis(loaded, once([*judge.judged(found), *of_text]), (*judge.judged(of_file), *of_text), of_views)


def without_view(diagnostic: Diagnostic) -> Diagnostic:
    return attrs.evolve(diagnostic, view="")


def once(found: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Sorted; of diagnostics that differ in nothing but the view, the one of the whole file or of the first view."""
    kept: dict[Diagnostic, Diagnostic] = {}
    for diagnostic in found:
        key = without_view(diagnostic)
        earlier = kept.get(key)
        if earlier is None or (earlier.view and not diagnostic.view):
            kept[key] = diagnostic
    return tuple(sorted(kept.values(), key=Diagnostic.sort_key))


def run_tests(path: str, *, text: str | None = None, overrides: Sequence[str] = ()) -> list[TestResult]:
    """Run the `test` blocks of a plan file, in order. Raises UsageError if the file cannot be read."""
    loaded = load(path, text, derived=derived_values(), overrides=overrides)
    return [run_test(loaded, test, check) for test in loaded.tests]
