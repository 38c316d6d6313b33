"""Are the names of other libraries answered with ours, once and at their place?"""

from __future__ import annotations

import pytest

from forgeplan.dsl.vocabulary import foreign_members, schema_words
from forgeplan.spec.registry import component_called, components, kinds
from tests.dsl.plans import at, extended, only


@pytest.mark.parametrize(
    ("body", "code", "place", "help"),
    [
        ("mesh.tensor_parallel = 2", "FP0301", "tensor_parallel", "did you mean `tp`?"),
        ("mesh = { context_parallel_degree = 2 }", "FP0301", "context_parallel_degree", "did you mean `cp`?"),
        ("mesh.dp = 2", "FP0301", "dp", "did you mean `dp_shard`?"),
        (
            "mesh.sp = 2",
            "FP0301",
            "sp",
            "`sp` is called `sequence` here, a field of `apply.tp`: `apply.tp.sequence = …`",
        ),
        (
            "model.moe = { experts = 4, top_k = 2, norm_topk_prob = true }",
            "FP0301",
            "norm_topk_prob",
            "`norm_topk_prob` is called `renormalise` here, a field of `model.moe.router`: "
            "`model.moe.router.renormalise = …`",
        ),
        (
            "model.moe = { experts = 4, top_k = 2, router = softmax }",
            "FP0210",
            "softmax",
            "did you mean `softmax_topk`?",
        ),
        ("apply = [activation_checkpointing]", "FP0210", "activation_checkpointing", "did you mean `recompute`?"),
        ("apply = [float8 { recipe = rowwise }]", "FP0210", "float8", "did you mean `fp8`?"),
        ("apply = [checkpoint]", "FP0210", "checkpoint", "did you mean `recompute`?"),
        (
            "apply = [fsdp { reshard_after_forward = false }]",
            "FP0301",
            "reshard_after_forward",
            "did you mean `reshard`?",
        ),
        ('mesh.pp = 2\napply = [pp { schedule = "1F1B" }]', "FP0307", '"1F1B"', "without quotes: `one_f_one_b`"),
        (
            'mesh.pp = 2\napply = [pp { schedule = "Interleaved1F1B" }]',
            "FP0307",
            '"Interleaved1F1B"',
            "without quotes: `interleaved`",
        ),
        ("mesh.pp = 2\napply = [pp { schedule = 1f1b }]", "FP0108", "1f1b", "write `one_f_one_b`"),
        (
            "mesh.pp = 2\napply = [pp { schedule = Interleaved1F1B }]",
            "FP0311",
            "Interleaved1F1B",
            "did you mean `interleaved`?",
        ),
    ],
)
def test_a_name_of_another_library_is_answered_with_ours(body: str, code: str, place: str, help: str) -> None:
    loaded = extended(body)
    fault = only(loaded)
    assert (fault.code, at(loaded, fault), fault.help[0]) == (code, place, help)


@pytest.mark.parametrize(("item", "code"), [("guard", "FP0307"), ("optimizer", "FP0210")])
def test_a_part_of_the_plan_in_apply_is_one_message_with_what_may_stand_there(item: str, code: str) -> None:
    fault = only(extended(f"apply = [recompute, {item}]"))
    assert (fault.code, fault.help[-1]) == (
        code,
        "known: `compile`, `cp`, `ep`, `fp8`, `fsdp`, `pp`, `recompute` or `tp`",
    )


def test_no_foreign_name_is_one_of_ours() -> None:
    names = {name for kind in kinds() for name in components(kind)}
    assert component_called("Activation_Checkpointing", "operation") == "recompute"
    assert [word for word in names for kind in kinds() if component_called(word, kind)] == []
    assert not set(foreign_members()) & set(schema_words())
