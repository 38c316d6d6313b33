"""Does the executor do what the program says, and refuse what the plan does not?"""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import torch

from forgeplan.diagnostics.refusal import InternalError, Refusal
from forgeplan.plan.execution_plan import TensorFact
from forgeplan.runtime.executor import build, named_tensors
from forgeplan.runtime.loss import forward_loss
from forgeplan.runtime.optim.optimizer import build_optimizer
from forgeplan.runtime.registry import executes, implementation, register
from forgeplan.spec.model.decoder import Decoder
from forgeplan.spec.optimizer.adamw import AdamW
from forgeplan.spec.plan import Precision
from tests.runtime.tiny import TinyData, execution_plan

CPU = torch.device("cpu")


def saved_bytes(plan: Any) -> int:
    """Bytes that autograd keeps of one forward, weights apart."""
    bundle = build(plan, CPU)
    weights = {p.untyped_storage().data_ptr() for p in bundle.model.parameters()}
    kept: dict[int, int] = {}

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in weights:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        forward_loss(bundle, TinyData(plan).microbatch(0), None)
    return sum(kept.values())


def test_recompute_removed_from_the_program_changes_what_is_saved() -> None:
    plan = execution_plan(recompute="full")
    without = attrs.evolve(plan, program=tuple(op for op in plan.program if op.name != "recompute"))
    assert saved_bytes(plan) < saved_bytes(without) / 2


@pytest.mark.parametrize("swapped", [(0, 1), (0, 4), (1, 2), (2, 3), (3, 4)])
def test_two_operations_in_the_wrong_order_are_refused(swapped: tuple[int, int]) -> None:
    program = list(execution_plan(recompute="full").program)
    first, second = (program[i] for i in swapped)
    program[swapped[0]], program[swapped[1]] = second, first
    with pytest.raises(Refusal, match=f"applies {second.name} before ") as refused:
        build(execution_plan(program=tuple(program)), CPU)
    assert refused.value.code.id == "FP1008"


def test_a_model_that_is_not_the_planned_one_is_refused_by_name() -> None:
    plan = execution_plan()
    altered = tuple(
        TensorFact(fact.name, (3, 3), "bf16") if fact.name == "layers.1.mlp.w_up.weight" else fact
        for fact in plan.tensors
        if fact.name != "norm.weight"
    )
    with pytest.raises(Refusal) as refused:
        build(attrs.evolve(plan, tensors=altered), CPU)
    assert refused.value.code.id == "FP1009"
    assert refused.value.message.splitlines() == [
        "2 of 20 parameters or layers differ from the plan",
        "  layers.1.mlp.w_up.weight: planned 3×3 bf16, built 24×16 fp32",
        "  norm.weight: planned nothing, built 16 fp32",
    ]


def test_masters_are_stored_as_planned_whatever_computes() -> None:
    precision = Precision(params="fp32", compute="bf16", reduce="fp32", moments="fp32")
    bundle = build(execution_plan(precision=precision), CPU)
    assert {p.dtype for p in bundle.model.parameters()} == {torch.float32}
    logits = bundle.model(torch.arange(4)[None]).logits_BSV
    assert logits.dtype == torch.bfloat16


def test_gradients_of_bf16_weights_add_up_in_fp32() -> None:
    """256 + 1 + 1 is 258 in fp32; one by one in bf16, whose spacing is 2 there, it stays 256."""
    precision = Precision(params="bf16", compute="bf16", reduce="fp32", moments="fp32")
    bundle = build(execution_plan(precision=precision), CPU)
    weight = bundle.model.norm.weight
    for number, size in enumerate((256.0, 1.0, 1.0), 1):
        (weight * size).sum().backward()
        bundle.after_microbatch(number == 3)
    assert weight.grad.unique().tolist() == [258.0]


def test_the_names_of_the_state_do_not_depend_on_the_program() -> None:
    found = []
    for recompute in (None, "full"):
        bundle = build(execution_plan(recompute=recompute), CPU)
        found.append({name: tuple(t.shape) for name, t in named_tensors(bundle, build_optimizer(bundle)).items()})
    assert found[0] == found[1]
    assert {name for name in found[0] if "layers.0.mlp.w_up" in name} == {
        "model.layers.0.mlp.w_up.weight",
        "optim.layers.0.mlp.w_up.weight.exp_avg",
        "optim.layers.0.mlp.w_up.weight.exp_avg_sq",
        "optim.layers.0.mlp.w_up.weight.step",
    }


def test_nothing_in_the_runtime_reads_the_plan_s_own_list_of_transforms() -> None:
    """The program is what runs; `job.apply` is what a person wrote."""
    from pathlib import Path

    import forgeplan.runtime

    folder = Path(forgeplan.runtime.__file__).parent
    assert [str(f) for f in folder.rglob("*.py") if "job.apply" in f.read_text("utf-8")] == []


def test_code_is_found_by_the_class_it_implements() -> None:
    assert implementation("optimizer", execution_plan().job.optimizer).__name__ == "build_adamw"
    with pytest.raises(InternalError, match="no code is registered for the loss int"):
        implementation("loss", 3)
    with pytest.raises(ValueError, match="AdamW describes another component"):
        register.optimizer("lion", spec=AdamW)
    with pytest.raises(ValueError, match="Decoder is implemented twice"):
        executes(Decoder)(lambda: None)
