"""What did the routers of a step do, over all its microbatches and ranks?"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.runtime.reports import RoutingTotals

NUM_SCALARS = 5


def flat(routing: Any) -> Tensor:
    """A layer's Routing of one microbatch as one vector, fp64, to be added up: five scalars, then a count an expert."""
    scalars = (routing.balance, routing.sequence_balance, routing.z, routing.dropped, routing.entropy)
    detached = [torch.as_tensor(s, dtype=torch.float64, device=routing.counts_E.device).detach() for s in scalars]
    return torch.cat([torch.stack(detached), routing.counts_E.double()])


def totals_of(summed: list[float], plan: ExecutionPlan) -> RoutingTotals:
    """What a layer's vectors, added over the step, say. Losses are means over microbatches."""
    balance, sequence_balance, z, dropped, entropy = summed[:NUM_SCALARS]
    counts = summed[NUM_SCALARS:]
    microbatches = plan.job.batch.accumulation * plan.mesh.data_ranks
    return RoutingTotals(
        balance_loss=(balance + sequence_balance) / microbatches,
        z_loss=z / microbatches,
        counts=tuple(int(count) for count in counts),
        dropped=dropped / max(sum(counts), 1),
        entropy=entropy / max(plan.tokens_per_step, 1),
    )
