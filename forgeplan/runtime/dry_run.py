"""What would `forgeplan run` do, without doing it? Needs no torch."""

from __future__ import annotations

from pathlib import Path

from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.runtime.certificate import sentence
from forgeplan.runtime.checkpoint import layout
from forgeplan.runtime.options import RunOptions
from forgeplan.runtime.run_directory import RunDirectory


def describe(plan: ExecutionPlan, options: RunOptions) -> str:
    """A few lines: the run, its processes, its directory, and from where it would go on."""
    cluster, estimates = plan.job.cluster, plan.estimates
    directory = directory_of(plan, options)
    steps = f"{plan.steps:,} steps" if plan.steps is not None else "until budget.wall is used up"
    degrees = plan.mesh.describe()
    lines = [
        f"run        {plan.name} (plan {plan.meaning[:12]})",
        f"model      {estimates.num_parameters:,} parameters",
        f"budget     {steps} of {estimates.tokens_per_step:,} tokens",
        f"processes  {plan.mesh.world} on {cluster.nodes} × {cluster.arch}" + (f": {degrees}" if degrees else ""),
        f"directory  {directory.root}",
        f"start      {_start(plan, options, directory)}",
        f"proof      {sentence(directory.certificate, plan, options.prove)}",
    ]
    if directory.lock.exists():
        lines.append(f"lock       {directory.lock} exists: refused if its process lives")
    return "\n".join(lines)


def directory_of(plan: ExecutionPlan, options: RunOptions) -> RunDirectory:
    """The run directory of a plan; a relative one is below the project."""
    project = Path(options.project)
    return RunDirectory(project / plan.run_dir, project / plan.job.checkpoint.path)


def resume_of(plan: ExecutionPlan, options: RunOptions) -> str | int:
    """What the command line says, else the plan."""
    return plan.job.checkpoint.resume if options.resume is None else options.resume


def _start(plan: ExecutionPlan, options: RunOptions, directory: RunDirectory) -> str:
    resume, steps = resume_of(plan, options), layout.list_steps(directory.checkpoints)
    newest = layout.newest(directory.checkpoints)
    if resume == "none":
        return "refused (FP1011): resume = none, and there are checkpoints" if steps else "from scratch: resume = none"
    if isinstance(resume, int):
        there = resume in steps
        return f"from step {resume}: it was named" if there else f"refused (FP1012): step {resume} is not there"
    if newest is None:
        return f"from scratch: there is no checkpoint in {directory.checkpoints}"
    if plan.steps is not None and newest.step >= plan.steps:
        return f"nothing to do: step {newest.step} of {plan.steps} is saved"
    return f"from step {newest.step}, the newest checkpoint; its checksums are verified at the start"
