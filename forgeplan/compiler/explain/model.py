"""Which parts has the model, and how many numbers are in each?"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from forgeplan.compiler.explain.page import percent, table, wrapped
from forgeplan.compiler.explain.sentence import short
from forgeplan.compiler.passes.parameters import parameters_of
from forgeplan.compiler.passes.units import module_of
from forgeplan.compiler.wording import count, fixed
from forgeplan.plan.execution_plan import ExecutionPlan

PARTS = (("attention.", "attention"), ("mlp.", "mlp"), ("", "norms"))
"""Parts of a block by the beginning of their names; the last takes the rest."""


def lines(plan: ExecutionPlan, width: int) -> list[str]:
    """Shape, a row for every part, totals."""
    rows = table(_rows(plan, PARTS), "llrr")
    if any(len(row) > width for row in rows):
        rows = table(_rows(plan, PARTS[:2]), "llrr")
    return [*wrapped(_shape(plan), width), "", *rows, "", *wrapped(_totals(plan), width)]


def _shape(plan: ExecutionPlan) -> str:
    m = plan.job.model
    notes = [
        f"{m.layers} layers of width {m.dim:,}",
        f"{m.heads} heads of {m.head_dim}"
        + (f" sharing {m.kv_heads} for keys and values" if m.kv_heads < m.heads else ""),
        f"{m.mlp} of {m.ffn:,}",
        f"vocabulary {m.vocab:,}" + (f" padded to {m.pad_vocab:,}" if m.pad_vocab != m.vocab else ""),
        f"context {m.context:,}",
    ]
    flags = [("qk_norm", "q/k norm"), ("bias", "biases"), ("tie", "embedding and head tied")]
    notes += [text for field, text in flags if getattr(m, field)]
    if m.window is not None:
        notes.append(f"window {m.window:,}")
    if m.rope.scaling is not None:
        notes.append(f"rope {m.rope.scaling.tag} × {count(m.rope.scaling.factor)}")
    return f"{m.tag}: " + ", ".join(notes)


def _rows(plan: ExecutionPlan, shown: Sequence[tuple[str, str]]) -> list[list[str]]:
    parameters = parameters_of(plan.job.model)
    sizes: dict[str, int] = {}
    block: dict[str, int] = {}
    for parameter in parameters.all:
        module = module_of(parameter.name)
        sizes[module] = sizes.get(module, 0) + parameter.numel
        if module == "layers.0":
            inner = parameter.name.removeprefix("layers.0.")
            part = next(name for prefix, name in PARTS if inner.startswith(prefix))
            block[part] = block.get(part, 0) + parameter.numel
    layers = [name for name in sizes if name.startswith("layers.")]
    rows = []
    for name, size in sizes.items():
        if name == "layers.0":
            inside = ", ".join(f"{part} {short(block[part])}" for _, part in shown if part in block)
            rows.append((f"{len(layers)} × block", inside, sum(sizes[layer] for layer in layers)))
        elif name not in layers:
            rows.append((name, _matrix(plan, name), size))
    total = parameters.num_total
    return [[name, shape, f"{size:,}", percent(Fraction(size, total))] for name, shape, size in rows]


def _matrix(plan: ExecutionPlan, module: str) -> str:
    tensors = [t for t in plan.tensors if module_of(t.name) == module]
    return " + ".join(" × ".join(f"{n:,}" for n in t.shape) for t in tensors)


def _totals(plan: ExecutionPlan) -> str:
    e, matmul = plan.estimates, parameters_of(plan.job.model).num_matmul
    active = "all active" if e.num_active_parameters == e.num_parameters else f"{e.num_active_parameters:,} active"
    unit, name = (10**9, "GFLOP") if e.flops_per_token >= 10**8 else (10**6, "MFLOP")
    full, causal = (fixed(Fraction(n, unit), 2) for n in (e.flops_per_token, e.flops_per_token_causal))
    return (
        f"{e.num_parameters:,} parameters in {len(plan.tensors):,} tensors, {active}, {matmul:,} in matrix products; "
        f"{full} {name} a token ({causal} counting the causal half of attention)"
    )
