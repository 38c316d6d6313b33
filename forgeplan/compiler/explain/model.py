"""Which parts has the model, and how many numbers are in each?"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from forgeplan.compiler.explain.page import percent, table, wrapped
from forgeplan.compiler.explain.sentence import short
from forgeplan.compiler.passes.parameters import parameters_of
from forgeplan.compiler.passes.units import NUMBERED, module_of
from forgeplan.compiler.wording import count, fixed, plural
from forgeplan.plan.execution_plan import ExecutionPlan

PARTS = (
    ("attention.", "attention"),
    ("mlp.", "mlp"),
    ("moe.experts.", "experts"),
    ("moe.shared.", "shared"),
    ("moe.router.", "router"),
    ("projection.", "projection"),
    ("", "norms"),
)
"""Parts of a block by the beginning of their names; the last takes the rest."""


def lines(plan: ExecutionPlan, width: int) -> list[str]:
    """Shape, a row for every part, totals."""
    parts = list(PARTS)
    rows = table(_rows(plan, parts), "llrr")
    while parts and any(len(row) > width for row in rows):
        # The smallest parts are the last.
        parts.pop()
        rows = table(_rows(plan, parts), "llrr")
    return [*wrapped(_shape(plan), width), "", *rows, "", *wrapped(_totals(plan), width)]


def _shape(plan: ExecutionPlan) -> str:
    m = plan.job.model
    notes = [
        f"{m.layers} layers of width {m.dim:,}",
        f"{m.heads} heads of {m.head_dim}"
        + (f" sharing {m.kv_heads} for keys and values" if m.kv_heads < m.heads else ""),
        *([f"{m.mlp} of {m.ffn:,}"] if m.moe is None else _experts(m)),
        f"vocabulary {m.vocab:,}" + (f" padded to {m.pad_vocab:,}" if m.pad_vocab != m.vocab else ""),
        f"context {m.context:,}",
    ]
    flags = [("qk_norm", "q/k norm"), ("bias", "biases"), ("tie", "embedding and head tied")]
    notes += [text for field, text in flags if getattr(m, field)]
    if m.mtp:
        notes.append(f"{plural(m.mtp, 'module')} of multi-token prediction")
    if m.window is not None:
        notes.append(f"window {m.window:,}")
    if m.rope.scaling is not None:
        notes.append(f"rope {m.rope.scaling.tag} × {count(m.rope.scaling.factor)}")
    return f"{m.tag}: " + ", ".join(notes)


def _experts(model: Any) -> list[str]:
    """What stands in place of the MLP, and in how many layers."""
    moe = model.moe
    number = sum(model.is_moe(layer) for layer in range(model.layers))
    found = [
        f"{moe.experts:,} experts ({model.mlp} of {moe.ffn:,}) in {plural(number, 'layer')}",
        f"{moe.top_k} a token by {moe.router.tag}",
    ]
    if moe.groups > 1:
        found.append(f"from {moe.group_limit} of {moe.groups} groups")
    if moe.shared:
        found.append(f"{moe.shared} shared")
    if moe.capacity is not None:
        found.append(f"capacity {count(moe.capacity)}")
    others = model.layers - number
    if others:
        found.append(f"{model.mlp} of {model.ffn:,} in the other {'layer' if others == 1 else f'{others} layers'}")
    return found


def _rows(plan: ExecutionPlan, shown: Sequence[tuple[str, str]]) -> list[list[str]]:
    """A row for each part of the model; blocks of equal parts are one, where the first of them stands."""
    sizes: dict[str, dict[str, int]] = {}
    for parameter in parameters_of(plan.job.model).all:
        module = module_of(parameter.name)
        parts = sizes.setdefault(module, {})
        part = _part(parameter.name.removeprefix(f"{module}."))
        parts[part] = parts.get(part, 0) + parameter.numel
    kinds: dict[tuple[str, ...], list[str]] = {}
    for module, parts in sizes.items():
        kinds.setdefault((module.partition(".")[0], *parts), []).append(module)
    total, names = sum(sum(parts.values()) for parts in sizes.values()), {name for _, name in shown}
    rows = []
    for (kind, *_), modules in kinds.items():
        first = sizes[modules[0]]
        size = sum(sum(sizes[module].values()) for module in modules)
        inside = ", ".join(f"{part} {short(first[part])}" for _, part in PARTS if part in first and part in names)
        if kind in NUMBERED:
            block = "MoE block" if "experts" in first else "block"
            row = [f"{len(modules)} × {block if kind == 'layers' else kind}", inside]
        else:
            row = [kind, _matrix(plan, kind)]
        rows.append([*row, f"{size:,}", percent(Fraction(size, total))])
    return rows


def _part(name: str) -> str:
    """The part of a block that a tensor belongs to; a module of multi-token prediction has a block and more."""
    return next(part for prefix, part in PARTS if name.removeprefix("block.").startswith(prefix))


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
