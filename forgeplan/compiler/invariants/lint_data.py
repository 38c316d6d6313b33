"""Is data used as it was most likely meant?"""

from __future__ import annotations

from collections.abc import Iterator

from forgeplan.compiler.changes import Change
from forgeplan.compiler.facts import Facts
from forgeplan.compiler.invariants.registry import Finding, lint
from forgeplan.diagnostics.diagnostic import Label


def drawn(facts: Facts) -> set[str]:
    """Sources that training draws from."""
    sources, mixture = facts.block("sources"), facts.block("mixture")
    if mixture is None:
        return set(sources) if len(sources) == 1 else set()
    return {name for name, weight in mixture.items() if weight.amount > 0}


@lint("unused-source", "a source is drawn by the mixture or read by an evaluation")
def unused_source(facts: Facts) -> Iterator[Finding]:
    sources, mixture = facts.block("sources"), facts.block("mixture")
    if mixture is None or facts.is_damaged:
        return
    read = {*mixture, *(node.source for node in facts.block("eval").values())}
    for name in sources:
        if name not in read:
            place = facts.place(f"sources.{name}")
            yield unused_source.at(
                f"source `{name}` is in no mixture and in no evaluation",
                Label(place, "never read"),
                help=(f"delete it, or give it a weight: mixture.{name} = …",),
                changes=(Change(f"sources.{name}", None),),
            )


@lint("eval-on-training-data", "an evaluation reads data that training does not see")
def eval_on_training_data(facts: Facts) -> Iterator[Finding]:
    seen = drawn(facts)
    for name, node in facts.block("eval").items():
        if node.source in seen and node.split is None:
            yield eval_on_training_data.at(
                f"evaluation `{name}` reads `{node.source}`, which training reads too",
                facts[f"eval.{name}.source"],
                help=(f"hold a share out of training: eval.{name}.split = 1%",),
                changes=(Change(f"eval.{name}.split", "1%"),),
            )
