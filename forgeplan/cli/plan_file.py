"""Which plan does a command mean, and is it fit to be compiled?

The options `--plan`, `--profile` and `--set`, and the way from a plan file to one job without errors.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from attrs import frozen

from forgeplan.cli.candidates import plan_names, profile_names, settings
from forgeplan.cli.terminal import show
from forgeplan.diagnostics.refusal import UsageError
from forgeplan.diagnostics.span import COMMAND_LINE
from forgeplan.runtime.options import ExitCode

if TYPE_CHECKING:
    from forgeplan.analysis import Analysis
    from forgeplan.diagnostics.diagnostic import Diagnostic
    from forgeplan.plan.execution_plan import ExecutionPlan
    from forgeplan.spec.job import Job

F = TypeVar("F", bound=Callable[..., Any])

_UNKNOWN = "FP0209"
"""The code of a plan, profile, param or field that the command line names and the file does not have."""

_OPTIONS = (
    click.option(
        "--plan",
        metavar="NAME",
        shell_complete=plan_names,
        help="Which plan of the file; needed if it has several.",
    ),
    click.option("--profile", metavar="NAME", shell_complete=profile_names, help="Which profile of the plan."),
    click.option(
        "--set",
        "overrides",
        multiple=True,
        metavar="NAME=VALUE",
        shell_complete=settings,
        help="Give a param or a field another value, as in `--set seed=3 --set 'budget.steps=9 steps'`.",
    ),
)


def choosing(command: F) -> F:
    """The options that choose a plan and vary it; they arrive as `plan`, `profile` and `overrides`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@frozen
class Choice:
    """A plan file and what the command line says about it."""

    file: str
    plan: str | None = None
    profile: str | None = None
    overrides: tuple[str, ...] = ()
    as_json: bool = False
    """Whether a program asks: errors are told in JSON."""

    @property
    def project(self) -> Path:
        """The folder that relative paths of the plan start from."""
        from forgeplan.dsl.imports import project_of

        return project_of(Path(self.file))

    def analysed(self, unsaved: Mapping[str, str] = {}) -> Analysis:
        """`unsaved` has texts that stand for the content of files, by real path.

        Raises UsageError for a file that cannot be read, or is compiled already.
        """
        from forgeplan.analysis import analyse
        from forgeplan.dsl.imports import real

        if self.file.endswith(".json"):
            raise UsageError(f"{self.file} is no plan file\n  help: give the file that it was compiled from")

        return analyse(
            self.file,
            overrides=self.overrides,
            profile=self.profile,
            plan=self.plan,
            text=unsaved.get(str(real(Path(self.file)))),
            unsaved=unsaved,
        )


@frozen
class Chosen:
    """The one job of a choice, with the diagnostics that concern it."""

    choice: Choice
    analysis: Analysis
    job: Job
    diagnostics: tuple[Diagnostic, ...]

    def refuse_errors(self) -> None:
        """Show what was found, and end the command if there are errors."""
        show_found(self.analysis, self.diagnostics, self.choice)

    def compiled(self) -> ExecutionPlan:
        """The sealed plan of a job without errors."""
        from forgeplan.compiler import emit

        command = shlex.join(["forgeplan", *sys.argv[1:]])
        return emit(self.job, created_by=command, sources=self.analysis.sources)


def chosen(choice: Choice) -> Chosen:
    """Analyse a file and find the one plan that is meant.

    Ends the command where faults leave no plan. Raises UsageError if the file has several, or none.
    """
    analysis = choice.analysed()
    names = [name for name in analysis.plans if choice.plan in (None, name)]
    if len(names) > 1:
        raise UsageError(
            f"{choice.file} has several plans: {', '.join(names)}\n  help: choose one, as in `--plan {names[0]}`"
        )
    unknown_profile = names and choice.profile not in (None, *analysis.loaded.profiles(names[0]))
    if not names or unknown_profile:
        show_found(analysis, analysis.diagnostics, choice)
        raise UsageError(f"{choice.file} has no plan that can be compiled")
    job = analysis.job(names[0], choice.profile)
    return Chosen(choice, analysis, job, analysis.concerning(job))


def has_errors(diagnostics: Iterable[Diagnostic]) -> bool:
    from forgeplan.diagnostics.diagnostic import Severity

    return any(d.severity is Severity.ERROR for d in diagnostics)


def show_found(analysis: Analysis, diagnostics: tuple[Diagnostic, ...], choice: Choice) -> None:
    """Diagnostics for a person on standard error, errors for a program on standard output; errors end the command.

    The exit code is 2 if nothing but the command line is wrong: it names what the file does not have.
    """
    from forgeplan.diagnostics.diagnostic import Severity
    from forgeplan.diagnostics.formats import summary

    if not choice.as_json:
        show(diagnostics, analysis.sources, err=True, after=f"\n\n{summary(diagnostics)}")
    elif has_errors(diagnostics):
        show(diagnostics, analysis.sources, format="json")
    errors = {(d.code, d.span.file if d.span else "") for d in diagnostics if d.severity is Severity.ERROR}
    if errors:
        raise SystemExit(ExitCode.USAGE if errors == {(_UNKNOWN, COMMAND_LINE)} else ExitCode.FAILED)
