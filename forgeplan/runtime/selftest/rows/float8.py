"""Which rows multiply in float8?

rowwise gives every row a power of two as its scale: rows that are dealt to other ranks or microbatches round alike, and
rows that are cut over tp or cp but for what is tiny beside the rest, which fp64 does not round to nothing. tensorwise
does not: its scales are of what a rank has of one microbatch, so its rows have microbatches
like those of the one process, and no axis that divides them.
"""

from __future__ import annotations

from typing import Any

from forgeplan.plan.mesh import Mesh
from forgeplan.runtime.selftest.row import Row
from forgeplan.runtime.selftest.rows.pipeline import PP2, PP2_FSDP2
from forgeplan.runtime.selftest.rows.shapes import FSDP2, FSDP4, HSDP, NORMED, REPLICAS, TP2
from forgeplan.runtime.selftest.rows.wrapped import CP2, EP2, TWO_STAGES, WHOLE
from forgeplan.runtime.selftest.tiny import moe

ATTENTION = ("attention.wq", "attention.wk", "attention.wv", "attention.wo")
MLP = ("mlp.w_gate", "mlp.w_up", "mlp.w_down")
SHARED = ("moe.shared.w_gate", "moe.shared.w_up", "moe.shared.w_down")
SHAPE = {"ffn": 32, "vocab": 32}
"""All linear layers in multiples of 16, or nearly: products are emulated."""
EXPERTS = SHAPE | {"moe": moe(shared=1)}


def float8(recipe: str, layer: tuple[str, ...] = (*ATTENTION, *MLP), **options: Any) -> dict[str, dict[str, Any]]:
    """The named layers of the first block, those of the second but for its attention, and the head if it is named."""
    blocks = [name for name in layer if name != "head"]
    first = [f"layers.0.{name}" for name in blocks]
    second = [f"layers.1.{name}" for name in blocks if name not in ATTENTION]
    head = [name for name in layer if name == "head"]
    return {"fp8": {"recipe": recipe, "emulate": True, "layers": (*first, *second, *head), **options}}


ROWWISE, TENSORWISE = float8("rowwise"), float8("tensorwise")
GATHERED = float8("tensorwise", all_gather=True)


def row(name: str, mesh: Mesh, transforms: dict[str, dict[str, Any]], **fields: Any) -> Row:
    return Row(name, mesh, transforms=transforms, **{"model": SHAPE, **fields})


FLOAT8 = [
    row("float8 rowwise, fsdp 2, packed", FSDP2, ROWWISE, model=SHAPE | NORMED, packed=True, accumulation=2),
    row("float8 rowwise, fsdp 4, recompute", FSDP4, ROWWISE, recompute="full", quick=True),
    row("float8 rowwise, fsdp 2, selective", FSDP2, ROWWISE, recompute="selective"),
    row("float8 rowwise, fsdp 2, compiled", FSDP2, ROWWISE | WHOLE),
    row("float8 rowwise, tp 2", TP2, ROWWISE),
    row("float8 rowwise, tp 2, fp32", TP2, ROWWISE, dtype="fp32"),
    row("float8 rowwise, two replicas, head", REPLICAS, float8("rowwise", ("head", *MLP))),
    row("float8 rowwise, cp 2", CP2, ROWWISE),
    row("float8 rowwise, cp 2, fp32", CP2, ROWWISE, dtype="fp32"),
    row("float8 rowwise, pp 2", PP2, ROWWISE, axes=TWO_STAGES, accumulation=4),
    row("float8 rowwise, ep 2, shared expert", EP2, float8("rowwise", (*ATTENTION, *SHARED)), model=EXPERTS),
    row("float8 tensorwise, hsdp 2x2", HSDP, TENSORWISE),
    row("float8 tensorwise, fsdp 2, two microbatches, recompute", FSDP2, TENSORWISE, accumulation=2, recompute="full"),
    row("float8 tensorwise, gathered, fsdp 4", FSDP4, GATHERED, quick=True),
    row("float8 tensorwise, gathered, hsdp 2x2, recompute", HSDP, GATHERED, recompute="full"),
    row("float8 tensorwise, gathered, fsdp 2, compiled", FSDP2, GATHERED | WHOLE, accumulation=2),
    row("float8 tensorwise, gathered, pp 2, fsdp 2", PP2_FSDP2, GATHERED, axes=TWO_STAGES, accumulation=2),
]
