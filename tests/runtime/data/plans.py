"""How do the tests of data make a plan?"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import attrs

from forgeplan.plan.execution_plan import FORMAT_VERSION, Estimates, ExecutionPlan
from forgeplan.plan.mesh import Mesh
from forgeplan.spec.model.decoder import Decoder
from forgeplan.spec.plan import Batch, Eval, Plan
from forgeplan.spec.quantity import NUMBER, STEPS, Quantity


def make_plan(
    sources: dict[str, Any],
    *,
    vocab: int = 300,
    ranks: int = 1,
    accumulation: int = 1,
    micro: int = 1,
    length: int = 4,
    pack: bool = False,
    seed: int = 0,
    tokenizer: Any = None,
    mixture: dict[str, Fraction | int] | None = None,
    evals: dict[str, Eval] | None = None,
) -> ExecutionPlan:
    """An execution plan of which only what data depends on is filled in."""
    values: dict[str, Any] = {field.name: None for field in attrs.fields(Plan)}
    values |= {
        "seed": seed,
        "model": Decoder(**{field.name: None for field in attrs.fields(Decoder)} | {"vocab": vocab}),  # type: ignore[arg-type]
        "tokenizer": tokenizer,
        "sources": sources,
        "mixture": None if mixture is None else {name: Quantity(Fraction(w), NUMBER) for name, w in mixture.items()},
        "batch": Batch(None, accumulation, micro, length, pack),  # type: ignore[arg-type]
        "eval": evals or {},
    }
    nothing = Estimates(0, 0, 0, 0, 0, None)
    return ExecutionPlan(
        FORMAT_VERSION, "test", "runs/test", Plan(**values), None, Mesh(dp_shard=ranks), (), (), (), nothing
    )


def held_out(source: str, split: Fraction | None, batches: int | str = "all") -> Eval:
    return Eval(source, split, Quantity(1, STEPS), batches)
