"""Has every evaluation data of its own, and an end?"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from forgeplan.compiler.facts import Facts
from forgeplan.compiler.invariants.registry import Finding, declared, invariant
from forgeplan.compiler.wording import amount
from forgeplan.diagnostics.data_codes import SPLIT
from forgeplan.diagnostics.diagnostic import Label
from forgeplan.spec.quantity import SHARE


@invariant("FP0617", "an evaluation has data, and comes to an end")
def evaluation_ends(facts: Facts) -> Iterator[Finding]:
    sources = facts.block("sources")
    for name, node in facts.block("eval").items():
        source = sources.get(node.source)
        if source is not None and getattr(source, "endless", False) and node.batches == "all":
            yield evaluation_ends.at(
                f"evaluation `{name}` reads all batches of `{node.source}`, and a {source.tag} source has no end",
                facts[f"eval.{name}.source"],
                facts[f"eval.{name}.batches"],
                help=(f"eval.{name}.batches = 50",),
            )


@declared(SPLIT)
def splits_leave_something(facts: Facts) -> Iterator[Finding]:
    """The part that needs no file: the sum of the shares held out of one source."""
    by_source: dict[str, list[str]] = {}
    nodes = facts.block("eval")
    for name, node in nodes.items():
        if node.split is not None:
            by_source.setdefault(node.source, []).append(name)
    for source, names in by_source.items():
        total = sum((nodes[name].split for name in names), Fraction(0))
        if total < 1:
            continue
        labels = [facts[f"eval.{name}.split"].label() for name in names]
        place = facts.place(f"sources.{source}")
        yield splits_leave_something.at(
            f"evaluations hold out {amount(total, SHARE)} of source `{source}`, and nothing is left to train on",
            *labels,
            Label(place, f"source `{source}`"),
            help=(f"keep the sum of {' + '.join(f'eval.{name}.split' for name in names)} below 100%",),
        )
