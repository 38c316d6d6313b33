"""Is it said from which source each sequence of training comes?"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from forgeplan.compiler.changes import Change
from forgeplan.compiler.facts import Facts
from forgeplan.compiler.invariants.registry import Finding, invariant
from forgeplan.compiler.wording import amount, listing, plan_text
from forgeplan.diagnostics.diagnostic import Label
from forgeplan.diagnostics.suggest import did_you_mean, nearest
from forgeplan.spec.quantity import NUMBER, SHARE, Quantity


def _label(facts: Facts, path: str, text: str) -> Label:
    return Label(facts.place(path), text)


def even(names: list[str]) -> str:
    """A mixture that draws all alike, as plan text: `{ web = 50%, code = 50% }`."""
    share, rest = divmod(100, len(names))
    weights = [f"{share}%"] * len(names) if not rest else ["1"] * len(names)
    return "{ " + ", ".join(f"{n} = {w}" for n, w in zip(names, weights, strict=True)) + " }"


@invariant("FP0601", "every name in the mixture is a source")
def mixture_names_sources(facts: Facts) -> Iterator[Finding]:
    mixture, sources = facts.block("mixture"), facts.block("sources")
    for name in mixture or {}:
        if name not in sources:
            meant = nearest(name, sources)
            yield mixture_names_sources.at(
                f"the mixture draws from `{name}`, and there is no such source",
                _label(facts, "mixture", f"`{name}` is no source"),
                _label(facts, "sources", f"sources: {listing(sources)}"),
                help=(did_you_mean(meant),) if meant else (f"the sources are {listing(sources)}",),
                changes=_renamed(mixture, name, meant),
            )


@invariant("FP0602", "a plan has a source to train on, and several sources have a mixture")
def something_to_train_on(facts: Facts) -> Iterator[Finding]:
    sources = list(facts.block("sources"))
    if not sources:
        yield something_to_train_on.at(
            "the plan has no source, and nothing is ever drawn at random in its place",
            _label(facts, "sources", "no source"),
            help=('sources = { web = tokens { path = "shards/*.npy" } }', "or one without files: python_source {}"),
        )
    elif len(sources) > 1 and facts.block("mixture") is None and not facts.is_damaged:
        yield something_to_train_on.at(
            f"there are {len(sources)} sources and no mixture that says how much is drawn from each",
            _label(facts, "sources", f"sources: {listing(sources)}"),
            changes=(Change("mixture", even(sources)),),
            help=(
                f"drawn alike: mixture = {even(sources)}",
                "a source that only an evaluation reads has no part in the mixture",
            ),
        )


@invariant("FP0603", "some source of the mixture has a weight above zero")
def something_is_drawn(facts: Facts) -> Iterator[Finding]:
    mixture = facts.block("mixture")
    if mixture is None or any(weight.amount > 0 for weight in mixture.values()):
        return
    what = f"every weight of the mixture is zero: {listing(mixture)}" if mixture else "the mixture is empty"
    names = list(mixture) or list(facts.block("sources"))
    yield something_is_drawn.at(
        f"{what}, so that there is nothing to draw",
        _label(facts, "mixture", ""),
        help=(f"mixture = {even(names)}",) if names else (),
        changes=(Change("mixture", even(names)),) if names else (),
    )


@invariant("FP0604", "weights written as percentages sum to 100 %")
def percentages_sum_to_a_whole(facts: Facts) -> Iterator[Finding]:
    mixture = facts.block("mixture")
    if not mixture or all(weight.amount == 0 for weight in mixture.values()):
        return
    shares = {name: w.amount for name, w in mixture.items() if w.dimension == SHARE}
    ratios = [name for name, w in mixture.items() if w.dimension != SHARE and w.amount != 0]
    if shares and ratios:
        yield percentages_sum_to_a_whole.at(
            f"the mixture mixes percentages ({listing(shares)}) and plain ratios ({listing(ratios)})",
            _label(facts, "mixture", ""),
            help=("write all weights as percentages, or all as plain numbers",),
        )
    total = sum(shares.values(), Fraction(0))
    if shares and not ratios and total != 1:
        yield percentages_sum_to_a_whole.at(
            f"the percentages of the mixture sum to {amount(total, SHARE)}, not 100%",
            _label(
                facts, "mixture", f"{' + '.join(amount(s, SHARE) for s in shares.values())} = {amount(total, SHARE)}"
            ),
            help=("{}: mixture = {}".format(*_normalised(mixture, total)),),
            changes=(Change("mixture", _normalised(mixture, total)[1]),),
        )


def _renamed(mixture: dict[str, Quantity], name: str, meant: str | None) -> Iterator[Change]:
    """The entry under the name that was meant, else the mixture without it."""
    rest = {key: weight for key, weight in mixture.items() if key != name}
    if meant is None or meant in mixture:
        total = sum((Fraction(w.amount) for w in rest.values() if w.dimension == SHARE), Fraction(0))
        if rest:
            yield Change("mixture", _normalised(rest, total)[1] if total else plan_text(rest))
    else:
        yield Change("mixture", plan_text({meant if key == name else key: weight for key, weight in mixture.items()}))


def _normalised(mixture: dict[str, Quantity], total: Fraction) -> tuple[str, str]:
    """How the mixture was most likely meant, and it as plan text."""
    scaled = {name: Fraction(weight.amount) / total for name, weight in mixture.items()}
    if all((share * 10_000).denominator == 1 for share in scaled.values()):
        text = ", ".join(f"{name} = {amount(share, SHARE)}" for name, share in scaled.items())
        return "in the same ratio", f"{{ {text} }}"
    text = ", ".join(f"{name} = {amount(Fraction(w.amount) * 100, NUMBER)}" for name, w in mixture.items())
    return "as plain ratios", f"{{ {text} }}"
