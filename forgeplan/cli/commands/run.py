"""`forgeplan run`: train what a plan says, as one command or as one rank of a job that something else launched."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path

import click
from attrs import frozen

from forgeplan.cli.candidates import plans_and_compiled
from forgeplan.cli.files import read_bytes
from forgeplan.cli.plan_file import Choice, choosing, chosen
from forgeplan.cli.terminal import Command
from forgeplan.diagnostics.refusal import UsageError
from forgeplan.runtime.options import ExitCode, RunOptions


class Resume(click.ParamType[str | int]):
    """`auto`, `none` or `step=N`."""

    name = "resume"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str | int:
        text = str(value)
        if text in ("auto", "none"):
            return text
        step = text.removeprefix("step=")
        if step != text and step.isdecimal():
            return int(step)
        return self.fail(f"{text!r} is none of `auto`, `none`, `step=N`", param, ctx)


@click.command("run", cls=Command, short_help="Train what a plan file says.")
@click.argument("file", shell_complete=plans_and_compiled)
@choosing
@click.option("--nproc", type=click.IntRange(1), metavar="N", help="Compile for N processes on this machine.")
@click.option(
    "--resume",
    type=Resume(),
    metavar="auto|none|step=N",
    help="Go on from the newest checkpoint, start anew, or go on from step N; otherwise the plan decides.",
)
@click.option("--dry-run", is_flag=True, help="Say what would happen, and train nothing.")
@click.option("--take-over", is_flag=True, help="Take the run directory from a job of another machine that has ended.")
def command(
    file: str,
    plan: str | None,
    profile: str | None,
    overrides: tuple[str, ...],
    nproc: int | None,
    resume: str | int | None,
    dry_run: bool,
    take_over: bool,
) -> int:
    """Train what FILE says: a plan file, or an execution plan that `compile` wrote.

    Starts its processes itself, or joins the torchrun that started it. Run again to go on from the last checkpoint.
    Ctrl-C once saves and stops (exit code 75), twice ends at once (130).
    """
    if nproc is not None:
        overrides = (*overrides, "cluster.nodes=1", f"cluster.devices_per_node={nproc}")
    choice = Choice(file, plan, profile, overrides)
    is_compiled = file.endswith(".json")
    project = (is_compiled and _project_of_run(file)) or choice.project
    options = RunOptions(resume, take_over, dry_run, str(project), _proving(choice))
    return Run(_read_compiled(choice) if is_compiled else _compile(choice), options).start()


@frozen
class Run:
    read_plan: Callable[[], bytes]
    """Gives the bytes of plan.json; called once in a job, on its first rank."""
    options: RunOptions

    def start(self) -> int:
        from forgeplan.runtime.launch import is_rank_of_a_launched_job, launch

        if not is_rank_of_a_launched_job():
            return launch(self.read_plan(), self.options)
        if self.options.dry_run:
            return launch(self.read_plan(), self.options) if os.environ.get("RANK", "0") == "0" else ExitCode.FINE
        from forgeplan.runtime import signals

        # Before torch is imported, which takes seconds in which a signal may come.
        received = signals.install()
        from forgeplan.runtime.run import run_worker

        return run_worker(self.read_plan, self.options, received)


def _proving(choice: Choice) -> str:
    """The command that proves the plan of a choice; a compiled one does not say what it was compiled from."""
    if choice.file.endswith(".json"):
        return "`forgeplan prove` with the plan file that it was compiled from"
    named = [(name, value) for name, value in (("--plan", choice.plan), ("--profile", choice.profile)) if value]
    named += [("--set", override) for override in choice.overrides]
    return shlex.join(["forgeplan", "prove", choice.file, *(word for pair in named for word in pair)])


def _project_of_run(file: str) -> Path | None:
    """Where relative paths start for the plan.json of a run directory; None for another file, or a damaged one."""
    from forgeplan.runtime.run_directory import project_above

    try:
        run_dir = json.loads(Path(file).read_bytes())["run_dir"]
        return project_above(Path(file), run_dir)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None  # said when the plan is read


def _read_compiled(choice: Choice) -> Callable[[], bytes]:
    if choice.plan or choice.profile or choice.overrides:
        raise UsageError(
            f"{choice.file} is compiled: --plan, --profile, --set and --nproc cannot change it\n"
            "  help: give them with the plan file it was compiled from"
        )
    return lambda: read_bytes(choice.file)


def _compile(choice: Choice) -> Callable[[], bytes]:
    def compiled() -> bytes:
        from forgeplan.plan.codec import dumps

        found = chosen(choice)
        found.refuse_errors()
        return dumps(found.compiled())

    return compiled
