"""Are meshes, widths and sequences that do not divide refused with their numbers, and all that runs taken?"""

from __future__ import annotations

from typing import Any

import pytest

from forgeplan.compiler import check, emit
from forgeplan.diagnostics.diagnostic import Diagnostic, Severity
from forgeplan.spec.quantity import SEQUENCES, Quantity
from tests.compiler.jobs import job, tokens
from tests.compiler.test_checks import everything

SMALL = {
    "model.layers": 4, "model.dim": 64, "model.heads": 4, "model.kv_heads": 4, "model.ffn": 128, "model.vocab": 256,
}  # fmt: skip
EXPERTS = SMALL | {"model.moe.experts": 8, "model.moe.top_k": 2}
ODD = {"batch.global": Quantity(512, SEQUENCES), "batch.length": 4095}
ON_CPU = {"cluster.arch": "cpu", "precision.compute": "fp32", "cluster.hbm": None}


def applied(**transforms: dict[str, Any]) -> dict[str, Any]:
    """`apply` with these transforms and options, in order."""
    options = {f"apply.{name}.{key}": v for name, given in transforms.items() for key, v in given.items()}
    return {"apply": dict.fromkeys(transforms, 0), **options}


def errors(changes: dict[str, Any]) -> list[Diagnostic]:
    return [d for d in check(job(changes)) if d.severity is Severity.ERROR]


BROKEN: list[tuple[str, dict[str, Any], list[str]]] = [
    ("FP0401", {"mesh.tp": 2, "mesh.dp_shard": 4},
     ["dp_shard · tp = 4 · 2 = 8 ranks", "4 devices", "mesh.dp_shard: 2, or `auto`", "mesh.tp: 1"]),
    ("FP0401", {"mesh.dp_shard": 2},
     ["dp_shard = 2 ranks", "mesh.dp_shard: 4", "mesh.tp: 2", "mesh.pp: 2", "mesh.cp: 2"]),
    ("FP0401", {"mesh.pp": 3, "mesh.tp": 2, "mesh.dp_shard": 4, "model.layers": 6},
     ["pp · dp_shard · tp = 3 · 4 · 2 = 24 ranks", "mesh.dp_shard = auto"]),
    ("FP0401", {**EXPERTS, "mesh.dp_shard": 2, "mesh.ep": 2}, ["2 ranks", "mesh.ep = 2 is no factor"]),
    ("FP0402", {"mesh.tp": 2, "mesh.dp_replicate": 3, "cluster.devices_per_node": 8, "batch.global": tokens(48 * 4096)},
     ["dp_replicate · tp = 3 · 2 = 6: 8 ÷ 6 = 1 remainder 2", "mesh.dp_replicate: 1, 2, 4"]),
    ("FP0403", {**EXPERTS, "model.moe.experts": 12, "mesh.dp_shard": 4, "mesh.ep": 3},
     ["dp_shard · cp · tp = 4 · 1 · 1 = 4, and 4 % 3 = 1", "model.moe.experts = 12", "mesh.ep: 1, 2, 4"]),
    ("FP0403", {**EXPERTS, "mesh.dp_replicate": 4, "mesh.ep": 2}, ["1 · 1 · 1 = 1, and 1 % 2 = 1", "mesh.ep: 1"]),
    ("FP0404", {"mesh.dp_shard": 4, "mesh.ep": 2}, ["no layer of this model has experts", "mesh.ep: 1"]),
    ("FP0405", {**EXPERTS, "model.moe.experts": 6, "model.moe.every": 2, "mesh.ep": 4},
     ["layers.1", "6 % 4 = 2", "mesh.ep: 1, 2", "model.moe.experts: 4, 8"]),
    ("FP0406", {**EXPERTS, "mesh.tp": 2, "mesh.ep": 4, **applied(tp={"sequence": False}, ep={})},
     ["mesh.tp = 2", "mesh.ep = 4", "apply.tp.sequence: true"]),
    ("FP0407", {**SMALL, "batch.global": tokens(10**6), "mesh.tp": 2, "mesh.cp": 2},
     ["each of 1 data rank", "mesh.cp = 2 and mesh.tp = 2 do not multiply the batch"]),
    ("FP0412", {**SMALL, "model.heads": 6, "model.kv_heads": 2, "model.head_dim": 16, "mesh.tp": 4},
     ["6 % 4 = 2", "mesh.tp: 1, 2"]),
    ("FP0413", {**SMALL, "model.kv_heads": 2, "mesh.tp": 4},
     ["2 % 4 = 2", "apply.tp.kv = shard", "mesh.tp: 1, 2", "in apply: tp { kv = replicate }"]),
    ("FP0414", {**SMALL, "model.ffn": 127, "mesh.tp": 2}, ["the MLP of layers.0", "127 % 2 = 1", "ffn: 126, 128"]),
    ("FP0414", {**EXPERTS, "model.moe.ffn": 33, "model.moe.shared": 2, "mesh.tp": 4},
     ["2 · 33 = 66 hidden units of the shared experts of layers.0", "66 % 4 = 2", "moe.ffn: 32, 34"]),
    ("FP0414", {**EXPERTS, "model.moe.first_dense": 1, "model.moe.ffn": 32, "model.ffn": 127, "mesh.tp": 2},
     ["the MLP of layers.0"]),
    ("FP0414", {**EXPERTS, "model.moe.shared": 1, "model.ffn": 127, "mesh.tp": 2}, ["model.ffn: 126, 128"]),
    ("FP0415", {**SMALL, "model.vocab": 250, "model.pad_vocab": 251, "mesh.tp": 4},
     ["251 % 4 = 3", "pad_vocab: 252, with 2 rows added", "masked"]),
    ("FP0416", {**SMALL, **ODD, "mesh.tp": 2},
     ["4,095 % 2 = 1", "4094 tokens, 4096 tokens", "in apply: tp { sequence = false }"]),
    ("FP0416", {**SMALL, **ON_CPU, "batch.length": 4092, "batch.global": Quantity(512, SEQUENCES), "mesh.tp": 2,
                "mesh.cp": 2, "cluster.devices_per_node": 8, "model.context": 8192, **applied(cp={}), "model.ffn": 128,
                "batch.micro": 2, "mesh.dp_shard": 2, "batch.accumulation": ...} | {"batch.length": 4090, **applied(
                    cp={"balance": "none"})},
     ["cp · tp = 2 · 2 = 4 ranks", "4,090 % 4 = 2", "4088 tokens, 4092 tokens"]),
    ("FP0419", {**SMALL, **ODD, **ON_CPU, "batch.length": 4092, "mesh.cp": 4},
     ["no multiple of 8", "an early and a late part", "4,092 % 8 = 4", "4088 tokens, 4096 tokens",
      "in apply: cp { balance = none }", "mesh.cp: 1, 2"]),
    ("FP0419", {**SMALL, **ODD, **ON_CPU, "mesh.cp": 2, **applied(cp={"balance": "none"})},
     ["no multiple of 2", "4,095 % 2 = 1", "4094 tokens, 4096 tokens"]),
    ("FP0419", {**SMALL, **ODD, "batch.length": 4092, "mesh.cp": 4},
     ["512", "128 positions", "3584 tokens, 4096 tokens"]),
    ("FP0420", {**SMALL, "tokenizer": "byte", "model.vocab": 512, "batch.pack": True, "model.window": 64, "mesh.cp": 2,
                "model.softcap": 50, **applied(cp={"attention": "ring"})},
     ["a window of 64 tokens", "a soft cap of 50", "packed documents", "apply.cp.attention: all_gather"]),
    ("FP0425", {**EXPERTS, "mesh.pp": 2},
     ["not supported by this executor", "mesh.pp: 1", "mesh = { pp = 1, ep = 2 }",
      "mesh = { pp = 1, tp = 2, ep = 2 }"]),
    ("FP0425", {**EXPERTS, "mesh.pp": 2, "mesh.dp_shard": 2}, ["mesh = { pp = 1, dp_shard = 4, ep = 2 }"]),
    ("FP0427", {**SMALL, "model.tie": True, "mesh.pp": 2}, ["tie: false", "mesh.pp: 1", "16,384 parameters more"]),
    ("FP0428", {**SMALL, "model.mtp": 1, "mesh.cp": 2}, ["mesh.cp = 2", "mtp: 0"]),
    ("FP0428", {**SMALL, "model.mtp": 1, "mesh.pp": 2, "mesh.cp": 2}, ["mesh.pp = 2 and mesh.cp = 2", "mtp: 0"]),
    ("FP0436", {**SMALL, "mesh.cp": 2, "mesh.tp": 2, **applied(fsdp={"reshard": 4})}, ["2 % 4 = 2", "reshard: 1, 2"]),
    ("FP0436", {**EXPERTS, "mesh.ep": 4, **applied(fsdp={"reshard": 2})},
     ["experts cannot stay sharded over 2 of 1 rank", "dp_shard · cp · tp ÷ ep = 4 · 1 · 1 ÷ 4", "reshard: 1"]),
]  # fmt: skip
"""Code, changes, and what the message says with its values and ways out."""

FINE: dict[str, dict[str, Any]] = {
    "6, one key and value head": {"model.kv_heads": 1},
    "7, one of them on 4 tp ranks": {**SMALL, "model.kv_heads": 1, "mesh.tp": 4, **applied(tp={"kv": "replicate"})},
    "8, odd degrees": {**SMALL, **ODD, "cluster.devices_per_node": 3, "model.heads": 24, "model.kv_heads": 6,
                       "model.head_dim": 128, "mesh.tp": 3, "model.ffn": 12_288},
    "10, ep takes every rank": {**EXPERTS, "mesh.dp_shard": 4, "mesh.ep": 4},
    "11, ep beyond dp_shard": {**EXPERTS, "mesh.dp_shard": 2, "mesh.tp": 2, "mesh.ep": 4},
    "12, ep below tp": {**EXPERTS, "mesh.tp": 4, "mesh.ep": 2},
    "13, one expert a rank": {**EXPERTS, "model.moe.experts": 4, "model.moe.top_k": 4, "mesh.ep": 4},
    "14, experts with tp and no ep": {**EXPERTS, "mesh.tp": 2},
    "15, a vocabulary no multiple of tp": {**SMALL, "model.vocab": 50_257, "mesh.tp": 4},
    "24, all ranks in cp": {**SMALL, "mesh.cp": 4, "mesh.dp_shard": 1, "batch.global": Quantity(1, SEQUENCES),
                            "batch.micro": 1},
    "25, tp over nodes": {**SMALL, "cluster.nodes": 2, "model.heads": 8, "model.kv_heads": 8, "mesh.tp": 8},
    "26, tied embeddings with tp": {**SMALL, "model.tie": True, "mesh.tp": 2},
    "29, reshard to all ranks of dp_shard and cp": {**SMALL, "mesh.cp": 2, **applied(fsdp={"reshard": 4})},
    "ep without sequence parallelism and tp": {**EXPERTS, "mesh.ep": 4, **applied(tp={"sequence": False})},
    "tp without sequence parallelism": {**SMALL, **ODD, "mesh.tp": 2, **applied(tp={"sequence": False})},
    "a ring of plain causal attention": {
        **SMALL, "mesh.cp": 2, "model.window": 4096, **applied(cp={"attention": "ring"}),
    },
    "a ring needs no blocks": {**SMALL, **ODD, "batch.length": 4092, "mesh.cp": 2, **applied(cp={"attention": "ring"})},
    "further tokens with tp": {**SMALL, "model.mtp": 2, "mesh.tp": 2},
    "every axis at once": {**SMALL, "cluster.devices_per_node": 32, "mesh.pp": 2, "mesh.dp_replicate": 2, "mesh.cp": 2,
                           "mesh.tp": 2},
}  # fmt: skip
"""By row of the table of plans that no check may reject, where a number stands before."""


@pytest.mark.parametrize(("code", "changes", "said"), BROKEN, ids=[f"{c}-{i}" for i, (c, _, _) in enumerate(BROKEN)])
def test_what_does_not_divide_is_named_with_its_values_and_ways_out(
    code: str, changes: dict[str, Any], said: list[str]
) -> None:
    (found,) = errors(changes)
    assert found.code == code
    assert [text for text in said if text not in everything(found)] == []


@pytest.mark.parametrize("changes", FINE.values(), ids=FINE)
def test_a_layout_that_runs_is_not_rejected(changes: dict[str, Any]) -> None:
    assert errors(changes) == []
    made = job(changes)
    assert emit(made).mesh.world == made.derived["cluster.devices"]


def test_a_degree_that_breaks_many_rules_is_one_message_of_the_rule_nearest_the_model() -> None:
    """3 tp ranks divide neither heads, widths and positions nor the devices."""
    (found,) = errors({"mesh.tp": 3})
    assert found.code == "FP0412"
    assert "legal values of mesh.tp: 1, 2, 4" in found.help
    others = {note[:6] for note in found.notes if note.startswith("FP")}
    assert {"FP0402", "FP0413", "FP0414", "FP0416"} <= others


def test_options_of_a_transform_that_apply_leaves_out_are_judged_as_if_it_stood_there() -> None:
    """`sequence = false` would do, but not where ep needs the tp ranks to hold different tokens."""
    alone = {**SMALL, **ODD, "mesh.tp": 2}
    with_experts = {**EXPERTS, **ODD, "mesh.tp": 2, "mesh.ep": 2}
    offer = "in apply: tp { sequence = false }"
    assert offer in errors(alone)[0].help
    assert offer not in errors(with_experts)[0].help


def test_a_way_out_is_shown_even_if_the_memory_could_not_be_judged_before() -> None:
    """12 experts of the 8B shape do not fit 4 devices whatever ep is; that is told once ep is possible."""
    large = {"model.moe.experts": 12, "model.moe.top_k": 2}
    (found,) = errors({**large, "mesh.dp_shard": 4, "mesh.ep": 3})
    assert "legal values of mesh.ep: 1, 2, 4" in found.help
    assert [d.code for d in errors({**large, "mesh.dp_shard": 4, "mesh.ep": 4})] == ["FP0901"]


LINTS: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "tp over whole nodes": ("tp-crosses-node", {**SMALL, "cluster.nodes": 2, "model.heads": 8, "model.kv_heads": 8,
                                                "mesh.tp": 8},
                            ["groups of 8", "nodes of 4 devices", "mesh.tp: 1, 2, 4"]),
    "tp over the edge of a node": (
        "tp-crosses-node",
        {**SMALL, "cluster.nodes": 2, "cluster.devices_per_node": 6, "model.heads": 12, "model.kv_heads": 12,
         "model.head_dim": 16, "mesh.tp": 4, "batch.global": Quantity(12, SEQUENCES)},
        ["1 of every 3 groups of 4"]),
    "heads that divide, kept whole": ("setting-without-effect",
                                      {**SMALL, "mesh.tp": 2, **applied(tp={"kv": "replicate"})},
                                      ["4 key and value heads divide over 2 tp ranks"]),
    "an axis of one rank": ("setting-without-effect", {**SMALL, **applied(cp={})}, ["`cp` in apply", "mesh.cp = 1"]),
}  # fmt: skip


@pytest.mark.parametrize(("name", "changes", "said"), LINTS.values(), ids=LINTS)
def test_an_unlikely_layout_is_a_warning(name: str, changes: dict[str, Any], said: list[str]) -> None:
    (found,) = check(job(changes))
    assert (found.code, found.severity) == (name, Severity.WARNING)
    assert [text for text in said if text not in everything(found)] == []


def test_a_number_of_ranks_to_stay_sharded_over_is_one_message_where_there_is_one_rank() -> None:
    (found,) = check(job({**SMALL, "mesh.tp": 4, **applied(fsdp={"reshard": 2})}))
    assert found.code == "FP0436"
    assert "no data rank has a part of them to keep" in found.help
    assert not any("`always`" in line for line in found.help)


def test_what_no_degree_can_do_speaks_before_the_arithmetic_of_degrees() -> None:
    """4 ranks of a pipeline leave none to the groups of experts: that is true, and not the reason."""
    (found,) = errors({**EXPERTS, "mesh.pp": 4, "mesh.ep": 4})
    assert found.code == "FP0425"
    assert any(note.startswith("FP0403") for note in found.notes)
    assert "legal value of mesh.pp: 1" in found.help
