"""Are pipelines and compiled blocks likely to be as fast as they could be?"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from forgeplan.compiler.changes import Change
from forgeplan.compiler.facts import Facts
from forgeplan.compiler.invariants.pipeline import schedule_of
from forgeplan.compiler.invariants.registry import Finding, lint
from forgeplan.compiler.passes.replayed import blocks_of
from forgeplan.compiler.wording import plural, rounded
from forgeplan.diagnostics.codes import Level
from forgeplan.diagnostics.diagnostic import Label
from forgeplan.plan.stages import bubble
from forgeplan.spec.operation.pp import SPLIT_BACKWARD

MOST_IDLE, GOOD = Fraction(1, 4), Fraction(1, 10)
"""Shares of a step that ranks of a pipeline wait: from the first on it is worth a word, the second is aimed at."""


@lint("pipeline-bubble", "ranks of a pipeline wait for a quarter of a step at most")
def pipeline_bubble(facts: Facts) -> Iterator[Finding]:
    schedule, pp, number = schedule_of(facts), facts["mesh.pp"], facts["batch.accumulation"]
    if schedule is None or pp.value == 1:
        return
    stages = facts.transform("pp").stages_per_rank
    share = bubble(schedule.value, pp.value, stages, number.value)
    if share is None or share <= MOST_IDLE:
        return
    needed = next(m for m in range(pp.value, 1_000 * pp.value) if _idle(schedule.value, pp.value, stages, m) <= GOOD)
    yield pipeline_bubble.at(
        f"each rank waits {rounded(100 * share)} % of a step for the others: {plural(pp.value, 'stage rank')} and "
        f"{plural(number.value, 'microbatch')} a step",
        pp,
        schedule,
        number,
        help=(f"with {needed:,} microbatches a step it would be {rounded(100 * GOOD)} %: a larger batch.global, or a "
              "smaller batch.micro",),
    )  # fmt: skip


def _idle(schedule: str, pp: int, stages: int, microbatches: int) -> Fraction:
    share = bubble(schedule, pp, stages, microbatches)
    return Fraction(1) if share is None else share


@lint("split-backward-recompute", "a schedule that splits backward does not compute blocks anew for each part")
def split_backward_recompute(facts: Facts) -> Iterator[Finding]:
    schedule, mode = schedule_of(facts), facts.get("apply.recompute.mode")
    if schedule is None or mode is None or schedule.value not in SPLIT_BACKWARD or mode.value != "full":
        return
    yield split_backward_recompute.at(
        f"{schedule.equation} computes gradients in two parts, and {mode.equation} computes each block anew for both",
        mode,
        schedule,
        help=("pp.schedule = interleaved, whose backward is one part",),
        changes=(Change(schedule.path, "interleaved"),),
    )


@lint("fp8-without-compile", "float8 is used with `compile`")
def fp8_without_compile(facts: Facts) -> Iterator[Finding]:
    emulate = facts.get("apply.fp8.emulate")
    if emulate is None or emulate.value or facts.get("apply.compile.backend") is not None:
        return
    yield fp8_without_compile.at(
        "float8 without compile is most likely slower than bf16: each cast is a kernel of its own",
        Label(facts.place("apply.fp8", "apply"), "fp8"),
        help=("add compile: apply += [compile]",),
        changes=(Change("apply.compile", ""),),
    )


@lint("compile-graph-breaks", "compiled blocks are one graph", Level.ALLOW)
def compile_graph_breaks(facts: Facts) -> Iterator[Finding]:
    if facts.get("apply.compile.backend") is None:
        return
    model = facts.block("model")
    blocks = len(blocks_of(model))
    broken = sum(model.is_moe(layer) for layer in range(blocks))
    if broken:
        yield compile_graph_breaks.at(
            f"{broken:,} of {plural(blocks, 'block')} have experts and are compiled in parts: how many tokens an "
            "expert gets is known only when it runs",
            Label(facts.place("apply.compile", "apply"), "compile"),
            facts["model.moe.experts"],
        )
