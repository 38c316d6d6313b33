"""Does the loop count, skip, stop and resume as it should?"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
import torch
from attrs import evolve

from forgeplan.diagnostics.refusal import Refusal
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.runtime.data.microbatch import NOT_COUNTED, Microbatch
from forgeplan.runtime.executor import Bundle, build, named_tensors
from forgeplan.runtime.optim.optimizer import Optimizer, build_optimizer
from forgeplan.runtime.selftest.reference import train_reference
from forgeplan.runtime.state import TrainState
from forgeplan.runtime.train import Outcome, train
from forgeplan.spec.nonfinite.policies import Skip, Stop
from forgeplan.spec.schedule.shapes import Constant
from tests.runtime.tiny import Quiet, TinyData, decoder, execution_plan, steps

CPU = torch.device("cpu")


def ready(plan: ExecutionPlan) -> tuple[Bundle, Optimizer]:
    bundle = build(plan, CPU)
    return bundle, build_optimizer(bundle)


def trained(plan: ExecutionPlan, data: Any = None, services: Quiet | None = None) -> tuple[Any, ...]:
    bundle, optimizer = ready(plan)
    state, services = TrainState(), services or Quiet()
    outcome = train(plan, bundle, optimizer, data or TinyData(plan), state, services)
    return outcome, state, services, bundle, optimizer


def test_a_run_counts_steps_sequences_tokens_and_labels() -> None:
    plan = execution_plan(accumulation=3, micro=2, length=16, total_steps=4)
    outcome, state, services, *_ = trained(plan)
    counted = sum(
        int((m.labels_BS != NOT_COUNTED).sum()) for step in range(4) for m in TinyData(plan).microbatches(6 * step)
    )
    assert outcome is Outcome.FINISHED
    assert (state.step, state.samples, state.tokens, state.counted) == (4, 24, 24 * 16, counted)
    assert [r.step for r in services.reports] == services.saves == [1, 2, 3, 4]
    assert services.reports[-1].counted == counted
    assert 0 < state.wall_seconds < 60


def test_a_finished_run_does_nothing_more() -> None:
    plan = execution_plan(total_steps=2)
    bundle, optimizer = ready(plan)
    services = Quiet()
    assert train(plan, bundle, optimizer, TinyData(plan), TrainState(step=2), services) is Outcome.FINISHED
    assert services.reports == []


def test_a_signal_stops_after_the_step_in_progress() -> None:
    outcome, state, *_ = trained(execution_plan(total_steps=5), services=Quiet(stop_after=2))
    assert (outcome, state.step) == (Outcome.STOPPED, 2)


def test_time_stops_a_run_over_all_its_resumes() -> None:
    plan = execution_plan(total_steps=None, schedule=None, wall=Fraction(100))
    bundle, optimizer = ready(plan)
    state = TrainState(wall_seconds=99.99999)
    assert train(plan, bundle, optimizer, TinyData(plan), state, Quiet()) is Outcome.OUT_OF_TIME
    assert state.step == 1


def test_a_run_in_two_parts_is_the_unbroken_run_bit_for_bit() -> None:
    plan = execution_plan(total_steps=6, model=decoder(dropout=Fraction("0.1")))
    *_, whole_services, whole, whole_optimizer = trained(plan)
    _, state, first_services, first, first_optimizer = trained(plan, services=Quiet(stop_after=3))
    bundle, optimizer = ready(plan)
    stored = {name: t.clone() for name, t in named_tensors(first, first_optimizer).items()}
    for name, tensor in named_tensors(bundle, optimizer).items():
        tensor.copy_(stored[name])
    services = Quiet()
    train(plan, bundle, optimizer, TinyData(plan), state, services)
    together = first_services.reports + services.reports
    assert [(r.loss, r.grad_norm, r.lr) for r in together] == [
        (r.loss, r.grad_norm, r.lr) for r in whole_services.reports
    ]
    wanted = named_tensors(whole, whole_optimizer)
    assert all(torch.equal(t, wanted[name]) for name, t in named_tensors(bundle, optimizer).items())


class Poisoned(TinyData):
    """Data whose forward gives NaN gradients at one step."""

    def __init__(self, plan: ExecutionPlan, bundle: Bundle, *poisoned_steps: int, data_rank: int = 0) -> None:
        super().__init__(plan, data_rank)
        self.poisoned, self.step = False, 0
        self.poisoned_steps = poisoned_steps
        bundle.model.norm.register_forward_hook(self.poison)

    def microbatches(self, first_sample: int) -> list[Microbatch]:
        self.step += 1
        self.poisoned = self.step in self.poisoned_steps
        return super().microbatches(first_sample)

    def poison(self, module: Any, inputs: Any, output: torch.Tensor) -> None:
        if self.poisoned:
            output.register_hook(lambda gradient: gradient * float("nan"))


def test_a_skipped_step_changes_no_weight_and_advances_everything_else() -> None:
    """NaN at update 3 of 6: as one process that leaves that batch out; the others keep the rates of their numbers."""
    plan = execution_plan(total_steps=6, dtype="fp64")
    bundle, optimizer = ready(plan)
    state, services = TrainState(), Quiet()
    outcome = train(plan, bundle, optimizer, Poisoned(plan, bundle, 3), state, services)
    assert (outcome, state.step, state.skipped, state.samples) == (Outcome.FINISHED, 6, 1, 12)
    assert [r.skipped for r in services.reports] == [False, False, True, False, False, False]
    wanted = train_reference(plan, packed=False, left_out={3})
    for name, p in bundle.model.named_parameters():
        moved = wanted.weights[name] - wanted.initial[name]
        assert (p - wanted.weights[name]).norm() <= 1e-9 * moved.norm(), name
    assert optimizer.named_state()["norm.weight"]["step"].item() == 5


@pytest.mark.parametrize(
    ("policy", "stops_after", "says"),
    [(Stop(), 2, "guard.nonfinite = stop"), (Skip(budget=1), 4, "2 steps were skipped, and guard.nonfinite allows 1")],
)
def test_trouble_beyond_the_budget_is_refused(policy: Any, stops_after: int, says: str) -> None:
    plan = execution_plan(total_steps=6, nonfinite=policy)
    bundle, optimizer = ready(plan)
    state = TrainState()
    with pytest.raises(Refusal, match=says) as refused:
        train(plan, bundle, optimizer, Poisoned(plan, bundle, 2, 4), state, Quiet())
    assert refused.value.code.id == "FP1019"
    assert state.step == stops_after


class NothingCounted(TinyData):
    def microbatch(self, first: int) -> Microbatch:
        found = super().microbatch(first)
        return evolve(found, labels_BS=torch.full_like(found.labels_BS, NOT_COUNTED))


def test_a_step_without_counted_labels_has_loss_and_gradient_zero() -> None:
    plan = execution_plan(total_steps=1)
    _, state, services, *_ = trained(plan, data=NothingCounted(plan))
    report = services.reports[0]
    assert (report.loss, report.grad_norm, report.skipped, state.counted) == (0, 0, False, 0)


def test_the_count_of_microbatches_changes_nothing_with_z_loss_either() -> None:
    """The same eight sequences as 1, 2, 4 and 8 microbatches."""
    found = []
    for accumulation in (1, 2, 4, 8):
        plan = execution_plan(
            accumulation=accumulation, micro=8 // accumulation, z=Fraction("1e-2"), total_steps=3, dtype="fp64"
        )
        _, _, services, bundle, _ = trained(plan)
        found.append(
            [(r.loss, r.z_loss, r.grad_norm) for r in services.reports]
            + [(p.sum().item(), p.norm().item(), 0.0) for p in bundle.model.parameters()]
        )
    for other in found[1:]:
        assert torch.allclose(torch.tensor(other), torch.tensor(found[0]), rtol=1e-10, atol=1e-12)


def test_labels_are_not_shifted_a_second_time() -> None:
    """The next token is always t + 1 mod 16: learnt to a loss below 0.05, and 3 goes on as 4 5 6 7."""
    plan = execution_plan(
        model=decoder(vocab=16, dim=32, head_dim=8, ffn=64),
        total_steps=120, schedule=Constant(warmup=steps(10)), length=16, micro=4,
    )  # fmt: skip

    class Counting(TinyData):
        def microbatch(self, first: int) -> Microbatch:
            ids = (torch.arange(17)[None] + torch.arange(first, first + 4)[:, None]) % 16
            return Microbatch(ids[:, :-1], ids[:, 1:], sample=first)

    _, _, services, bundle, _ = trained(plan, data=Counting(plan))
    assert services.reports[-1].loss < 0.05
    ids = torch.tensor([[3]])
    for _ in range(4):
        ids = torch.cat([ids, bundle.model(ids).logits_BSV[:, -1:].argmax(-1)], 1)
    assert ids.tolist() == [[3, 4, 5, 6, 7]]


def test_random_tokens_cannot_be_learnt() -> None:
    """Fresh uniform tokens in every batch: the loss stays above ln 16 − 0.05 = 2.72."""
    plan = execution_plan(
        model=decoder(vocab=16), total_steps=60, schedule=Constant(warmup=steps(5)), micro=8, length=32
    )
    _, _, services, *_ = trained(plan)
    assert min(r.loss for r in services.reports[10:]) > 2.72
