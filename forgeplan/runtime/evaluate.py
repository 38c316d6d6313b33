"""What is the loss on data that training does not see?"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

import torch

from forgeplan.runtime.data.microbatch import Microbatch
from forgeplan.runtime.executor import Bundle
from forgeplan.runtime.loss import LossSums, forward_loss
from forgeplan.runtime.operations.fsdp import drop_gathered
from forgeplan.runtime.reports import EvalReport


def evaluate(name: str, bundle: Bundle, microbatches: Iterable[Microbatch], step: int) -> EvalReport:
    """Mean loss over all counted labels of all ranks, by the forward code of training, without dropout.

    `microbatches` are this rank's; their number must be the same on every rank (a rank without data of its own gets
    microbatches whose labels are all NOT_COUNTED), because gathering parameters is collective. Collective.
    """
    start = time.monotonic()
    speaks = bundle.axes.tp.group.index == 0
    totals = torch.zeros(2, dtype=torch.float64, device=bundle.device)
    try:
        with torch.no_grad():
            for sums in (bundle.forward_only or one_after_the_other)(bundle, microbatches):
                totals += torch.stack([sums.loss.double(), sums.counted.double()]) * speaks
    finally:
        drop_gathered(bundle.model)
    loss, counted = bundle.meshes.sum(totals).tolist()
    return EvalReport(name, step, loss / max(counted, 1), int(counted), time.monotonic() - start)


def one_after_the_other(bundle: Bundle, microbatches: Iterable[Microbatch]) -> Iterator[LossSums]:
    """The losses of each microbatch in turn."""
    return (forward_loss(bundle, microbatch, randomness=None) for microbatch in microbatches)
