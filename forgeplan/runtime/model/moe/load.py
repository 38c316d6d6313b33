"""What is reported about the load of the experts of a layer?"""

from __future__ import annotations

from collections.abc import Sequence


def load_report(counts: Sequence[float], dropped: float, entropy: float, top_k: int) -> dict[str, float | list[float]]:
    """Readable numbers from sums over microbatches and ranks: tokens that chose each expert, assignments dropped, and
    entropy of the routers' shares in nats.

    `load`: share of the assignments by expert; `max_load`: the largest ÷ the mean, 1 at balance; `entropy`: mean over
    tokens, ln E where a router knows no preference; `dropped`: share of the assignments.
    """
    assignments = max(sum(counts), 1)
    return {
        "load": [count / assignments for count in counts],
        "max_load": max(counts) * len(counts) / assignments,
        "entropy": entropy * top_k / assignments,
        "dropped": dropped / assignments,
    }
