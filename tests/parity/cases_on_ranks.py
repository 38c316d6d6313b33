"""What do the tests of cases from public reports run on every rank, and in one process?"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from fractions import Fraction
from typing import Any

import torch
from attrs import evolve, frozen
from torch import Tensor, nn
from torch.nn import functional as F

from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.plan.mesh import Mesh
from forgeplan.runtime.data.microbatch import NOT_COUNTED, Microbatch
from forgeplan.runtime.evaluate import evaluate
from forgeplan.runtime.executor import Bundle, build, named_views
from forgeplan.runtime.init import initialise
from forgeplan.runtime.model.decoder import Transformer
from forgeplan.runtime.optim.optimizer import build_optimizer
from forgeplan.runtime.parallel.placed import local
from forgeplan.runtime.randomness import Randomness
from forgeplan.runtime.selftest.executed import of_all_stages, whole
from forgeplan.runtime.state import TrainState
from forgeplan.runtime.step import Stopwatch, backward, count_labels, reduce_totals
from forgeplan.runtime.train import train
from forgeplan.spec.model.decoder import Decoder
from tests.runtime.tiny import Quiet, TinyData, adamw, decoder, execution_plan

CPU = torch.device("cpu")
ALONE = Mesh()
SEQUENCES = 8
"""Of a step."""


def tiny(**fields: Any) -> Decoder:
    """106,816 parameters, if no field says otherwise."""
    return decoder(**({"dim": 64, "head_dim": 16, "ffn": 128, "vocab": 256} | fields))


def tiny_plan(model: Decoder, mesh: Mesh = ALONE, *, micro: int = 2, **fields: Any) -> ExecutionPlan:
    """8 sequences of 32 tokens a step, in microbatches of `micro`, if no field says otherwise."""
    given: dict[str, Any] = {
        "accumulation": SEQUENCES // (micro * mesh.data_ranks),
        "dtype": "fp64", "length": 32, "seed": 17, "schedule": None, "total_steps": 3, "clip": Fraction(1),
        "optimizer": adamw(lr=Fraction("1e-3")),
    } | fields  # fmt: skip
    return execution_plan(model=model, mesh=mesh, micro=micro, **given)


def _as_drawn(labels_BS: Tensor, sample: int) -> Tensor:
    return labels_BS


def _two_of_five_uncounted(labels_BS: Tensor, sample: int) -> Tensor:
    drawn = torch.rand(labels_BS.shape, generator=torch.Generator().manual_seed(sample))
    return labels_BS.masked_fill(drawn < 0.4, NOT_COUNTED)


def _first_half(labels_BS: Tensor, sample: int) -> Tensor:
    length = labels_BS.shape[1]
    return labels_BS.masked_fill(torch.arange(length) >= length // 2, NOT_COUNTED)


def _first_sequences(labels_BS: Tensor, sample: int) -> Tensor:
    numbers = sample + torch.arange(len(labels_BS))
    return labels_BS.masked_fill((numbers >= SEQUENCES // 2)[:, None], NOT_COUNTED)


def _none(labels_BS: Tensor, sample: int) -> Tensor:
    return torch.full_like(labels_BS, NOT_COUNTED)


COUNTED: Mapping[str, Callable[[Tensor, int], Tensor]] = {
    "as drawn": _as_drawn,
    "three of five": _two_of_five_uncounted,
    "first half": _first_half,
    "first sequences": _first_sequences,
    "none": _none,
}
"""Which labels of a microbatch that begins with sequence `sample` are counted, of those that are."""


class Data(TinyData):
    """With fewer labels; `alike` makes every microbatch of every rank one of the same content."""

    def __init__(self, plan: ExecutionPlan, data_rank: int, counted: str, alike: bool) -> None:
        super().__init__(plan, data_rank)
        self.counted, self.alike = COUNTED[counted], alike

    def microbatch(self, first: int) -> Microbatch:
        found = super().microbatch(0 if self.alike else first)
        return evolve(found, labels_BS=self.counted(found.labels_BS, found.sample))


@frozen
class Step:
    """The first step of a plan, before clipping."""

    loss: float
    norm: float
    counted: int
    gradients: dict[str, Tensor]


def first_step(plan: ExecutionPlan, counted: str = "as drawn", alike: bool = False) -> Step:
    """By the executor, on one of the plan's ranks; every rank answers with the whole."""
    bundle = build(plan, CPU)
    microbatches = Data(plan, bundle.meshes.data_rank, counted, alike).microbatches(0)
    labels = count_labels(microbatches, bundle)
    sums = backward(bundle, microbatches, labels)
    totals = reduce_totals(bundle, sums, labels, Stopwatch(0.0), stop=False)
    parts = {place.name: place.view(local(p.grad)) for place, p in bundle.parts() if p.grad is not None}
    return Step(totals.loss, totals.grad_norm, totals.counted, of_all_stages(bundle, whole(parts)))


def first_step_by_hand(plan: ExecutionPlan, counted: str = "as drawn") -> Step:
    """In one process, with torch's loss: the sum over counted labels divided by their number, and the mean over
    microbatches of the routers' losses."""
    job = plan.job
    model = Transformer(job.model).double()
    initialise(model, job.seed)
    data = Data(plan, 0, counted, alike=False)
    batches = [data.microbatch(first) for first in range(0, SEQUENCES, job.batch.micro)]
    number = sum(int((b.labels_BS != NOT_COUNTED).sum()) for b in batches)
    loss = torch.zeros((), dtype=torch.float64)
    for batch in batches:
        output = model(batch.tokens_BS, randomness=Randomness(job.seed, batch.sample))
        logits, labels = output.logits_BSV.flatten(0, 1), batch.labels_BS.flatten()
        part = F.cross_entropy(logits, labels, ignore_index=NOT_COUNTED, reduction="sum") / max(number, 1)
        loss += part.detach()
        routers = sum(r.balance + r.sequence_balance + r.z for r in output.routing.values()) / len(batches)
        (part + routers).backward()
    gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    return Step(loss.item(), float(nn.utils.get_total_norm(gradients.values())), number, gradients)


def weights_held(plan: ExecutionPlan, modules: Collection[str]) -> dict[str, Tensor]:
    """This rank's parts of the weights of some modules, by their last names, after training."""
    bundle = build(plan, CPU)
    train(plan, bundle, build_optimizer(bundle), TinyData(plan, bundle.meshes.data_rank), TrainState(), Quiet())
    return {place.name: local(p) for place, p in bundle.parts() if place.name.split(".")[-2] in modules}


def loss_of_a_zero_head(plan: ExecutionPlan) -> float:
    """By an evaluation; every token is as likely as any other."""
    bundle = build(plan, CPU)
    for place, parameter in bundle.parts():
        if place.name == "head.weight":
            local(parameter).zero_()
    return evaluate("held_out", bundle, [TinyData(plan, bundle.meshes.data_rank).microbatch(0)], 0).loss


def loss_after_nan(plan: ExecutionPlan) -> tuple[float, dict[str, Tensor]]:
    """Of weights that were written over memory full of NaN, and all of them."""
    bundle = build(plan, CPU)
    for tensor in (*bundle.model.parameters(), *bundle.model.buffers()):
        local(tensor).fill_(float("nan"))
    initialise(bundle.model, plan.job.seed, bundle.placed)
    return evaluated(bundle), whole(named_views(bundle))


def evaluated(bundle: Bundle) -> float:
    """The loss of the sequences of one step, each data rank with its own."""
    data = TinyData(bundle.plan, bundle.meshes.data_rank)
    return evaluate("held_out", bundle, data.microbatches(1000), 0).loss


def evaluated_around_training(plan: ExecutionPlan) -> tuple[float, float]:
    """Before the first step and after the last."""
    bundle = build(plan, CPU)
    data, first = TinyData(plan, bundle.meshes.data_rank), evaluated(bundle)
    train(plan, bundle, build_optimizer(bundle), data, TrainState(), Quiet())
    return first, evaluated(bundle)


def sum_of_parts(plan: ExecutionPlan, parts: list[float]) -> float:
    """What tp makes of the parts that its ranks have of a gradient."""
    bundle = build(plan, CPU)
    weight: Any = bundle.model.get_parameter("layers.0.attention.q_norm.weight")
    weight.grad = torch.full_like(weight, parts[bundle.axes.tp.group.index])
    for complete in bundle.complete_gradients:
        complete()
    return float(local(weight.grad)[0])
