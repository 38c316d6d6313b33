"""Which plan does a test train in seconds, in real processes? A tiny decoder on a synthetic source, saved often."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from attrs import evolve

from forgeplan.plan.codec import dumps
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.plan.hashes import seal
from forgeplan.plan.mesh import Mesh
from forgeplan.spec.nonfinite.policies import Skip
from forgeplan.spec.plan import Checkpoint, Eval, Metrics
from forgeplan.spec.quantity import STEPS, Quantity
from forgeplan.spec.sink.tensorboard import TensorBoard
from forgeplan.spec.source.built_in import Synthetic
from tests.runtime import tiny

SOURCE = Synthetic(states=16, noise=Fraction(1, 5), document=None)


def small_plan(
    *,
    ranks: int = 1,
    steps: int = 12,
    every: int = 4,
    keep: int | str = 3,
    resume: str | int = "auto",
    eval_every: int | None = None,
    eval_batches: int = 2,
    nonfinite: Any = None,
    name: str = "small",
    **fields: Any,
) -> ExecutionPlan:
    """Everything of the plan is fast: 2 layers of width 16, one microbatch of 2 × 16 tokens a rank."""
    plan = tiny.execution_plan(
        mesh=Mesh(dp_shard=ranks), total_steps=steps, nonfinite=nonfinite or Skip(budget=3), **fields
    )
    evals = {}
    if eval_every is not None:
        every_eval = Quantity(eval_every, STEPS)
        evals = {"held_out": Eval(source="made", split=Fraction(1, 4), every=every_eval, batches=eval_batches)}
    job = evolve(
        plan.job,
        sources={"made": SOURCE},
        checkpoint=Checkpoint(every=Quantity(every, STEPS), keep=keep, path=f"runs/{name}", resume=resume),
        metrics=Metrics(every=1, sinks=(TensorBoard(),)),
        eval=evals,
    )
    return seal(evolve(plan, job=job, name=name, run_dir=f"runs/{name}"))


def plan_bytes(**fields: Any) -> bytes:
    return dumps(small_plan(**fields))
