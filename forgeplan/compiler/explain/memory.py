"""How much does each rank hold, in exact bytes?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import prod

from forgeplan.compiler.explain.page import bar, percent, table, wrapped
from forgeplan.compiler.explain.written import layout
from forgeplan.compiler.passes.layout import Layout
from forgeplan.compiler.passes.parameters import parameters_of
from forgeplan.compiler.passes.shards import ALL_UNITS, ITEM_BYTES, shards_of
from forgeplan.compiler.wording import bytes_text, plural
from forgeplan.plan.execution_plan import ExecutionPlan, RankClass
from forgeplan.plan.unreduced import gradients_fit

MANY_RUNS = 3
MANY_CLASSES = 12


def lines(plan: ExecutionPlan, width: int) -> list[str]:
    """The ranks that hold most, row by row; a line for each class that holds less; what is gathered."""
    first, *others = plan.rank_classes
    found = _class(plan, first, width)
    if others:
        shown = others[:MANY_CLASSES]
        found += ["", "the others hold less, in bytes:", *("  " + line for line in _less(plan, shown, width - 2))]
    if len(others) > MANY_CLASSES:
        least = bytes_text(others[-1].state_bytes)
        found.append(f"  and {len(others) - MANY_CLASSES:,} more sets of ranks; the least any holds is {least}")
    return [*found, "", *wrapped(" ".join(_notes(plan)), width)]


def _less(plan: ExecutionPlan, others: Sequence[RankClass], width: int) -> list[str]:
    """A line for each class, or two where one is too narrow."""
    rows: list[tuple[str, ...]] = [("", "parameters", "gradients", "optimizer", "states")]
    for ranks in others:
        sizes = (ranks.parameter_bytes, ranks.gradient_bytes, ranks.optimizer_bytes, ranks.state_bytes)
        rows.append((who(ranks, plan.mesh.world), *(f"{size:,}" for size in sizes)))
    lines = table(rows, "lrrrr")
    if all(len(line) <= width for line in lines):
        return lines
    numbers = table([("", *row[1:]) for row in rows], "lrrrr")
    names = ["", *(row[0] for row in rows[1:])]
    return [line for pair in zip(names, numbers, strict=True) for line in pair if line]


def _class(plan: ExecutionPlan, ranks: RankClass, width: int) -> list[str]:
    precision, moments, where = plan.job.precision, plan.job.optimizer.num_moments, layout(plan)
    gradients = f"{precision.reduce}, undivided by fsdp" if where.reduces_late else precision.params
    rows = [
        ("parameters", precision.params, ranks.parameter_bytes),
        ("gradients", gradients, ranks.gradient_bytes),
        ("optimizer", f"{plural(moments, 'moment')} {precision.moments}, step counts", ranks.optimizer_bytes),
        ("states", "", ranks.state_bytes),
    ]
    hbm = None if where.offloads else plan.job.cluster.hbm
    share = f", {percent(Fraction(ranks.state_bytes, hbm))} of {bytes_text(hbm)}" if hbm else ""
    each = "" if ranks.num_ranks == 1 else " each"
    host = f"{', all but gradients' if where.reduces_late else ''} in host memory" if where.offloads else ""
    title = f"{who(ranks, plan.mesh.world)}: {bytes_text(ranks.state_bytes)}{each}{host}{share}"
    body = table([(name, what, f"{size:,} bytes", bytes_text(size)) for name, what, size in rows], "llrr")
    meter = [bar(Fraction(ranks.state_bytes, hbm), width)] if hbm else []
    return [*wrapped(title, width, "  "), *meter, *("  " + line for line in body)]


def who(ranks: RankClass, world: int) -> str:
    """`ranks 0 to 62`, `rank 63`, `all 64 ranks`."""
    if world == 1:
        return "the one rank"
    if ranks.num_ranks == world:
        return f"all {world:,} ranks"
    texts = [_run(*run) for run in ranks.ranks[:MANY_RUNS]]
    more = f" and more, {ranks.num_ranks:,} in all" if len(ranks.ranks) > MANY_RUNS else ""
    noun = "rank" if ranks.num_ranks == 1 else "ranks"
    return f"{noun} {', '.join(texts)}{more}"


def _run(first: int, count: int, stride: int) -> str:
    if count == 1:
        return f"{first:,}"
    last = first + (count - 1) * stride
    return f"{first:,} to {last:,}" + (f" by {stride:,}" if stride > 1 else "")


def _notes(plan: ExecutionPlan) -> Iterator[str]:
    where, precision = layout(plan), plan.job.precision
    if where.reduces_late:
        yield "Gradients of a pipeline are reduced at the end of a step, and wait for it as tp leaves them."
    shards = shards_of(plan.job.model, where, precision, plan.job.optimizer.num_moments)
    size, unit = bytes_text(shards.gathered_bytes), shards.gathered_unit
    if not shards.gathered_bytes:
        yield "Nothing is gathered: each rank has whole parameters, as far as tp and ep leave them."
    elif unit == ALL_UNITS:
        each = "" if shards.neediest.num_ranks == 1 else " each"
        ranks = who(shards.neediest, plan.mesh.world)
        yield f"Units stay gathered in {precision.compute} once they have computed: {size}{each} on {ranks}."
    else:
        yield f"While a unit computes it is gathered in {precision.compute}: at most {size} ({unit})."
    yield from _between_microbatches(plan, where)
    yield "Activations, logits and buffers come on top and are not in these numbers."


def _between_microbatches(plan: ExecutionPlan, where: Layout) -> Iterator[str]:
    """Whether FSDP reduces the gradients of a step once or for each microbatch; nothing where there is no choice."""
    number, cluster = plan.job.batch.accumulation, plan.job.cluster
    if where.reduces_late or number == 1 or not where.is_sharded:
        return
    size = unreduced_bytes(plan, where)
    if gradients_fit(size, cluster):
        yield f"The {number:,} microbatches of a step add gradients up before reducing them: {bytes_text(size)} more."
    elif cluster.hbm is None:
        yield "Each microbatch reduces its gradients, as `cluster.hbm` is not stated."
    else:
        yield (
            f"Each microbatch reduces its gradients: unreduced, those of a step would take {bytes_text(size)}, more "
            "than a quarter of a device."
        )


def unreduced_bytes(plan: ExecutionPlan, where: Layout) -> int:
    """Gradients of the whole model in the dtype of reduction, as tp and ep leave them, undivided by FSDP."""
    parameters = parameters_of(plan.job.model).all
    numbers = sum(prod(where.division(p.shape, p.cut).weight_shape) for p in parameters)
    return numbers * ITEM_BYTES[plan.job.precision.reduce]
