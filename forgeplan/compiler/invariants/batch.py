"""Is a step a whole number of microbatches, and does a sequence fit the model?"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from forgeplan.compiler.facts import Facts
from forgeplan.compiler.invariants.registry import MANY, Finding, divisors, invariant, legal, neighbours
from forgeplan.compiler.passes.batch import microbatches
from forgeplan.compiler.wording import amount, listing, plural
from forgeplan.spec.quantity import TOKENS, Quantity


@invariant("FP0407", "the global batch is a whole number of microbatches on every data rank")
def whole_microbatches(facts: Facts) -> Iterator[Finding]:
    total, micro, length, ranks = (
        facts[path] for path in ("batch.global", "batch.micro", "batch.length", "mesh.data_ranks")
    )
    found = microbatches(total.value, micro.value, length.value, ranks.value)
    if found.denominator == 1 and found >= 1:
        return
    in_tokens = total.value.dimension == TOKENS
    one = micro.value * ranks.value * (length.value if in_tokens else 1)
    per_sequence = f" · {length.value:,} tokens" if in_tokens else ""
    nearest = [Quantity(n, total.value.dimension) for n in neighbours(int(total.value.amount), one)]
    smallest = Fraction(total.value.amount) / (ranks.value * (length.value if in_tokens else 1))
    sizes = divisors(int(smallest)) if smallest.denominator == 1 and smallest >= 1 else []
    yield whole_microbatches.at(
        f"batch.global = {total.text} is {_mixed(found)} microbatches on each of "
        f"{plural(ranks.value, 'data rank')}: one microbatch of all ranks is "
        f"{plural(micro.value, 'sequence')}{per_sequence} · {plural(ranks.value, 'rank')} = "
        f"{amount(one, total.value.dimension)}",
        total,
        micro,
        *((length,) if in_tokens else ()),
        ranks,
        legal=(
            legal(facts, "batch.global", nearest),
            legal(facts, "batch.micro", sizes),
        ),
        help=_ranks_that_fit(Fraction(total.value.amount) * ranks.value / one),
        notes=_axes_that_share_data(facts),
    )


def _ranks_that_fit(per_rank: Fraction) -> Iterator[str]:
    """Numbers of data ranks that leave the batch whole: divisors of the microbatches that one rank alone would need."""
    if per_rank.denominator == 1 and per_rank >= 1:
        fitting = divisors(int(per_rank))
        shown = fitting if len(fitting) <= MANY else fitting[-4:]
        yield f"or another number of data ranks: {'' if shown == fitting else '… '}{listing(shown)}"


def _axes_that_share_data(facts: Facts) -> Iterator[str]:
    """Axes that are no factor of the batch, where one would think so."""
    axes = [axis for name in ("pp", "cp", "tp", "ep") if (axis := facts[f"mesh.{name}"]).value > 1]
    if axes:
        names, do = listing((axis.equation for axis in axes), " and "), "do" if len(axes) > 1 else "does"
        yield f"data ranks are dp_replicate · dp_shard: {names} {do} not multiply the batch"


def _mixed(value: Fraction) -> str:
    """`15 17/64`."""
    whole, rest = divmod(value.numerator, value.denominator)
    fraction = Fraction(rest, value.denominator)
    return " ".join(str(part) for part in (whole, fraction) if part)


@invariant("FP0505", "a sequence is no longer than the model's context")
def sequence_fits_the_context(facts: Facts) -> Iterator[Finding]:
    length, context = facts["batch.length"], facts["model.context"]
    if length.value <= context.value:
        return
    yield sequence_fits_the_context.at(
        f"a sequence of {length.text} is longer than the model's context of {context.text}",
        length,
        context,
        legal=(
            legal(facts, "model.context", [length.value]),
            legal(facts, "batch.length", [context.value]),
        ),
    )
