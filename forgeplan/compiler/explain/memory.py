"""Who holds what, in exact bytes?"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from forgeplan.compiler.explain.page import bar, percent, table, wrapped
from forgeplan.compiler.passes.shards import shards_of
from forgeplan.compiler.wording import bytes_text, plural
from forgeplan.plan.execution_plan import ExecutionPlan, RankClass

MANY_RUNS = 3


def lines(plan: ExecutionPlan, width: int) -> list[str]:
    """The ranks that hold most, row by row; a line for each class that holds less; what is gathered."""
    first, *others = plan.rank_classes
    found = _class(plan, first, width)
    if others:
        found += ["", "the others hold less, in bytes:", *("  " + line for line in _less(plan, others, width - 2))]
    return [*found, "", *wrapped(_gathered(plan), width)]


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
    precision = plan.job.precision
    moments = plan.job.optimizer.num_moments
    rows = [
        ("parameters", precision.params, ranks.parameter_bytes),
        ("gradients", precision.params, ranks.gradient_bytes),
        ("optimizer", f"{plural(moments, 'moment')} {precision.moments}, step counts", ranks.optimizer_bytes),
        ("states", "", ranks.state_bytes),
    ]
    hbm = plan.job.cluster.hbm
    share = f", {percent(Fraction(ranks.state_bytes, hbm))} of {bytes_text(hbm)}" if hbm else ""
    each = "" if ranks.num_ranks == 1 else " each"
    title = f"{who(ranks, plan.mesh.world)}: {bytes_text(ranks.state_bytes)}{each}{share}"
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


def _gathered(plan: ExecutionPlan) -> str:
    precision = plan.job.precision
    shards = shards_of(plan.job.model, plan.mesh, precision, plan.job.optimizer.num_moments)
    rest = "Activations, logits and buffers come on top and are not in these numbers."
    if not shards.gathered_bytes:
        return f"Nothing is gathered: each rank has whole parameters. {rest}"
    return (
        f"While a unit computes it is gathered in {precision.compute}: at most {bytes_text(shards.gathered_bytes)} "
        f"({shards.gathered_unit}). {rest}"
    )
