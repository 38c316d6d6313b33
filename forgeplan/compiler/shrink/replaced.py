"""What of a plan cannot be compared number by number on the processors of one machine, and what stands for it?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from attrs import frozen

from forgeplan.compiler.facts import Facts
from forgeplan.plan.proof import LeftOut
from forgeplan.spec.job import ABSENT

EXACT = "fp64"
RATES = (Fraction("1e-6"), Fraction("0.1"))
LEAST_EPS = Fraction("1e-8")


@frozen
class Replacement:
    """`now` gives the value at `path` from the facts; ABSENT leaves it out."""

    path: str
    now: Callable[[Facts], Any]
    why: str
    applies: Callable[[Facts], bool] = lambda facts: True


def recipe_of(facts: Facts) -> str | None:
    """Of float8, where the plan has it."""
    recipe = facts.get("apply.fp8.recipe")
    return None if recipe is None else str(recipe.value)


def _is(path: str, *words: str) -> Callable[[Facts], bool]:
    def applies(facts: Facts) -> bool:
        fact = facts.get(path)
        return fact is not None and fact.value in words

    return applies


def _sources(facts: Facts) -> dict[str, str]:
    return dict.fromkeys(facts.block("sources"), "synthetic")


FORMATS = "a layout changes the order of sums: only in a wide format is their rounding smaller than any fault"
HERE = "both sides of a proof are computed on the processors of one machine"
ROWWISE = ("apply.fp8.recipe", "rowwise")
DATA = "a layout does not know what tokens mean; documents are packed as in the plan"

REPLACEMENTS: tuple[Replacement, ...] = (
    *(
        Replacement(f"precision.{name}", lambda facts: EXACT, FORMATS)
        for name in ("params", "compute", "reduce", "moments")
    ),
    Replacement("cluster.arch", lambda facts: "cpu", HERE),
    Replacement("cluster.hbm", lambda facts: None, HERE),
    Replacement("cluster.bf16", lambda facts: None, HERE),
    Replacement(
        "model.attention",
        lambda facts: "auto",
        "a kernel that this machine does not have",
        _is("model.attention", "flash", "efficient", "cudnn", "flex"),
    ),
    Replacement(
        "apply.compile.backend",
        lambda facts: "aot_eager",
        "the same graphs and derivatives, without code generated for a device",
        _is("apply.compile.backend", "inductor"),
    ),
    Replacement(
        "optimizer.lr",
        lambda facts: min(max(facts["optimizer.lr"].value, RATES[0]), RATES[1]),
        "smaller steps vanish beside the rounding of weights, and larger ones let it grow",
        lambda facts: not RATES[0] <= facts["optimizer.lr"].value <= RATES[1],
    ),
    Replacement(
        "optimizer.eps",
        lambda facts: LEAST_EPS,
        "with less, a gradient that is nothing but rounding becomes a whole step",
        lambda facts: facts["optimizer.eps"].value < LEAST_EPS,
    ),
    Replacement("apply.fp8", lambda facts: ABSENT, "it is left out", _is("apply.fp8.recipe", "tensorwise")),
    Replacement("apply.fp8.emulate", lambda facts: True, "float8 products need a device", _is(*ROWWISE)),
    Replacement("apply.fp8.small", lambda facts: "convert", "all layers are small here", _is(*ROWWISE)),
    Replacement("tokenizer", lambda facts: None, DATA),
    Replacement("sources", _sources, DATA),
)


def replaced(facts: Facts) -> dict[str, Any]:
    """Values by path; evaluations go with the data that they read."""
    found = {r.path: r.now(facts) for r in REPLACEMENTS if r.applies(facts)}
    return found | {f"eval.{name}": ABSENT for name in facts.block("eval")}


def why(path: str) -> str | None:
    """Why a value was replaced, from the table; None for one that is only smaller."""
    return next((r.why for r in REPLACEMENTS if path == r.path), None)


SERVICES = (
    LeftOut("checkpoints, resuming, evaluations and metrics", "they change nothing that is trained"),
    LeftOut("reading and packing of data", "the tests of forgeplan hold it to the order that a seed gives"),
    LeftOut("speed, memory and kernels of a device", "the proof runs on a CPU"),
)


def left_out(facts: Facts) -> Iterator[LeftOut]:
    """What no trial says anything about."""
    yield from SERVICES
    if recipe_of(facts) == "tensorwise":
        yield LeftOut(
            "fp8 with recipe = tensorwise",
            "one scale a tensor follows its largest value, which depends on how a batch is cut over ranks: the trials "
            "train the same plan without fp8",
        )
