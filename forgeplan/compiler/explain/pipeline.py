"""Which stage has which layers, on which ranks, and how long do ranks wait?"""

from __future__ import annotations

from collections import Counter

from forgeplan.compiler.explain.page import percent, table, wrapped
from forgeplan.compiler.explain.written import layout, transform
from forgeplan.compiler.passes.layout import BARE_PP, Layout
from forgeplan.compiler.passes.parameters import parameters_of
from forgeplan.compiler.passes.units import module_of
from forgeplan.compiler.wording import listing, plural
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.plan.stages import bubble


def lines(plan: ExecutionPlan, width: int) -> list[str]:
    """How the layers were dealt, a row for each stage, and the share of a step that ranks wait; nothing without pp."""
    if plan.mesh.pp == 1:
        return []
    rows = table(_rows(plan, layout(plan)), "rlrlrl")
    return [*wrapped(_dealt(plan), width), "", *rows, "", *wrapped(_waits(plan), width)]


def _dealt(plan: ExecutionPlan) -> str:
    pp, layers = transform(plan, "pp", BARE_PP), plural(plan.job.model.layers, "layer")
    stages = plural(plan.mesh.pp * pp.stages_per_rank, "stage")
    if pp.cuts is None:
        embedding, head = (plural(weight, "layer") for weight in (pp.weights.embedding, pp.weights.head))
        how = f"dealt by weight, with the embedding as {embedding} and the head as {head} (pp.weights)"
    else:
        how = f"cut before {'layer' if len(pp.cuts) == 1 else 'layers'} {listing(pp.cuts)} (pp.cuts)"
    return f"{layers} in {stages}, {pp.stages_per_rank} a rank (pp.stages_per_rank), {how}."


def _rows(plan: ExecutionPlan, layout: Layout) -> list[tuple[str, ...]]:
    numbers: Counter[int] = Counter()
    for parameter in parameters_of(plan.job.model).all:
        numbers[layout.stage_of(module_of(parameter.name))] += parameter.numel
    last, ranks = len(layout.stages) - 1, plan.mesh.world // plan.mesh.pp
    rows: list[tuple[str, ...]] = [("stage", "layers", "", "", "parameters", "ranks")]
    for stage, (first, end) in enumerate(layout.stages):
        position = next(place for place, held in enumerate(layout.held) if stage in held)
        own = {0: "embedding", last: "norm, head"}.get(stage, "")
        which = "none" if first == end else f"{first:,}" if end == first + 1 else f"{first:,} to {end - 1:,}"
        where = f"p{position}: {position * ranks:,} to {(position + 1) * ranks - 1:,}" if ranks > 1 else f"p{position}"
        rows.append((f"{stage:,}", which, f"{end - first:,}", own, f"{numbers[stage]:,}", where))
    return rows


def _waits(plan: ExecutionPlan) -> str:
    pp, microbatches = transform(plan, "pp", BARE_PP), plan.job.batch.accumulation
    share = bubble(pp.schedule, plan.mesh.pp, pp.stages_per_rank, microbatches)
    order = f"{pp.schedule} with {plural(microbatches, 'microbatch')} a step"
    if share is None:
        return f"{order}: fewer than fill the pipeline once, and how long ranks then wait has no known formula."
    return (
        f"{order}: each rank waits {percent(share)} of it for the others, if all stages take equally long and transfers"
        " no time."
    )
