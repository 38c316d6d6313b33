"""Which columns of a step's record say how experts were used?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forgeplan.runtime.reports import RoutingTotals


def routing_columns(routing: Mapping[str, RoutingTotals]) -> dict[str, Any]:
    """Losses summed over layers, apart from the language-model loss; and for every layer its load. None is left out.

    `load` is each expert's share of the assignments, `max_load` the largest ÷ the mean (1 at balance), `entropy` in
    nats, `dropped` a share of the assignments.
    """
    if not routing:
        return {}
    columns: dict[str, Any] = {
        "balance_loss": sum(found.balance_loss for found in routing.values()) or None,
        "router_z_loss": sum(found.z_loss for found in routing.values()) or None,
        "max_load": max(found.imbalance for found in routing.values()),
    }
    for layer, found in routing.items():
        total = max(sum(found.counts), 1)
        columns[f"{layer}.load"] = [count / total for count in found.counts]
        columns[f"{layer}.max_load"] = found.imbalance
        columns[f"{layer}.entropy"] = found.entropy
        columns[f"{layer}.dropped"] = found.dropped
    return columns
