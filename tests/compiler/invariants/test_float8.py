"""Is every linear layer judged as torchao and the hardware judge it, and is a plan refused that asks for more?"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
from torch import nn

from forgeplan.compiler import check
from forgeplan.compiler.checking import facts_of
from forgeplan.compiler.passes.float8 import IS_SMALL, Linear, Report
from forgeplan.compiler.patterns import general
from forgeplan.diagnostics.diagnostic import Diagnostic, Severity
from tests.compiler.jobs import job, tokens
from tests.compiler.test_checks import everything

NO_MEMORY = {"cluster.hbm": None}
SMALL = {
    **NO_MEMORY, "model.layers": 2, "model.dim": 64, "model.heads": 4, "model.kv_heads": 2, "model.ffn": 128,
    "model.vocab": 256,
}  # fmt: skip
EMULATED = {**SMALL, "cluster.arch": "cpu", "precision.compute": "fp32"}


def fp8(**options: Any) -> dict[str, Any]:
    return {"apply": {"fp8": 0, "fsdp": 0}, **{f"apply.fp8.{name}": value for name, value in options.items()}}


def faults(changes: dict[str, Any]) -> list[Diagnostic]:
    return [d for d in check(job(changes)) if d.severity is Severity.ERROR]


def layers(changes: dict[str, Any]) -> tuple[Linear, ...]:
    report: Report = facts_of(job(changes)).results("float8")
    return report.layers


def reasons(changes: dict[str, Any]) -> dict[str, str]:
    """By the name of a layer, all layers of the model at once; an empty reason is one that is converted."""
    found: dict[str, set[str]] = {}
    for layer in layers(changes):
        found.setdefault(general(layer.name), set()).add(layer.reason)
    assert all(len(said) == 1 for said in found.values())
    return {name: said.pop() for name, said in found.items()}


# sizes -------------------------------------------------------------------------------------------

CHECKED = [
    (8192, 8192, True), (4096, 4096, True), (4096, 14_336, True), (14_336, 4096, True), (4096, 1024, False),
    (8192, 1024, False), (8192, 2048, False), (2048, 8192, True), (1024, 8192, False), (2048, 4096, False),
]  # fmt: skip
"""(K, N, whether rowwise gains), from torchao's published measurements."""


@pytest.mark.parametrize(("inputs", "outputs", "gains"), CHECKED)
def test_the_checked_points_of_rowwise(inputs: int, outputs: int, gains: bool) -> None:
    assert IS_SMALL["rowwise"](inputs, outputs) != gains


@pytest.mark.parametrize("recipe", ["rowwise", "tensorwise"])
def test_the_thresholds_are_those_of_torchao(recipe: str) -> None:
    from torchao.float8 import _auto_filter_for_recipe

    takes = _auto_filter_for_recipe(recipe, [])
    edges = [16, 1008, 1024, 1040, 2032, 2048, 2064, 4080, 4096, 4112, 8192]
    for inputs in edges:
        for outputs in edges:
            with torch.device("meta"):
                taken = takes(nn.Linear(inputs, outputs, bias=False), "layer")
            assert IS_SMALL[recipe](inputs, outputs) != taken, (inputs, outputs)


def test_the_8b_model_in_both_recipes() -> None:
    big = {"layers.*.attention.wq", "layers.*.attention.wo", "layers.*.mlp.w_gate", "layers.*.mlp.w_up",
           "layers.*.mlp.w_down"}  # fmt: skip
    for recipe in IS_SMALL:
        said = reasons(fp8(recipe=recipe))
        assert {name for name, reason in said.items() if not reason} == big
        assert said["layers.*.attention.wk"] == said["layers.*.attention.wv"] == "too small to gain"
        assert said["head"] == "excluded by a pattern"


def test_layers_are_judged_by_what_a_tp_rank_holds() -> None:
    """Column cuts divide N, row cuts K: 4,096 × 4,096 on 4 ranks is 1,024 wide."""
    changes = {**fp8(recipe="rowwise"), "cluster.devices_per_node": 4, "mesh.tp": 4}
    sizes = {general(layer.name): (layer.inputs, layer.outputs) for layer in layers(changes)}
    assert sizes["layers.*.attention.wq"] == (4096, 1024)
    assert sizes["layers.*.attention.wo"] == (1024, 4096)
    assert sizes["layers.*.mlp.w_up"] == (4096, 3584)
    assert sizes["layers.*.mlp.w_down"] == (3584, 4096)
    assert sizes["head"] == (4096, 32_064)
    converted = {name for name, reason in reasons(changes).items() if not reason}
    assert converted == {"layers.*.mlp.w_gate", "layers.*.mlp.w_up", "layers.*.mlp.w_down"}


def test_keys_and_values_that_every_tp_rank_has_are_judged_whole() -> None:
    changes = {**fp8(small="convert"), "mesh.tp": 4, "model.kv_heads": 2,
               "apply": {"tp": 0, "fp8": 0, "fsdp": 0}, "apply.tp.kv": "replicate"}  # fmt: skip
    sizes = {general(layer.name): (layer.inputs, layer.outputs) for layer in layers(changes)}
    assert sizes["layers.*.attention.wk"] == (4096, 256)
    assert sizes["layers.*.attention.wq"] == (4096, 1024)


def test_sizes_that_are_no_multiples_of_16_are_left_out_with_the_number() -> None:
    """Case C025: dim 64, ffn 120, vocabulary 2257, nothing filtered by size, two sequences of 36 tokens."""
    changes = {
        **EMULATED, **fp8(recipe="rowwise", emulate=True, small="convert", exclude=()),
        "model.ffn": 120, "model.vocab": 2257, "model.pad_vocab": 2257, "model.context": 64,
        "batch.micro": 2, "batch.length": 36, "batch.global": tokens(72 * 4),
    }  # fmt: skip
    said = reasons(changes)
    assert {name: reason for name, reason in said.items() if reason} == {
        "layers.*.mlp.w_gate": "120 % 16 = 8",
        "layers.*.mlp.w_up": "120 % 16 = 8",
        "layers.*.mlp.w_down": "120 % 16 = 8",
        "head": "2,257 % 16 = 1",
    }
    (found,) = faults(changes)
    assert found.code == "FP0451"
    assert "2 · 36 = 72 rows, and 72 % 16 = 8" in found.message
    assert "or batch.length = 40 tokens with batch.global = 320 tokens" in found.help
    assert reasons({**changes, "model.pad_vocab": ...})["head"] == ""  # padded to 2,272


# kinds -------------------------------------------------------------------------------------------


def test_experts_routers_and_tied_heads_are_listed_and_stay() -> None:
    changes = {**EMULATED, **fp8(emulate=True, small="convert", exclude=()), "model.tie": True,
               "model.moe.experts": 4, "model.moe.top_k": 2, "model.moe.shared": 1}  # fmt: skip
    said = reasons(changes)
    assert said["head"] == "the head is tied to the embedding"
    assert said["layers.*.moe.router"] == "routers stay as they are"
    assert {said[f"layers.*.moe.experts.{name}"] for name in ("w_gate", "w_up", "w_down")} == {
        "experts keep their format"
    }
    assert said["layers.*.moe.shared.w_up"] == ""
    experts = next(layer for layer in layers(changes) if layer.name.endswith("experts.w_up"))
    assert (experts.inputs, experts.outputs) == (64, 128)
    assert faults(changes) == []


def test_every_linear_layer_of_the_model_is_in_the_report_once_in_order() -> None:
    from forgeplan.runtime.model.decoder import build_decoder

    changes = {**EMULATED, **fp8(emulate=True), "model.mtp": 1}
    with torch.device("meta"):
        model = build_decoder(job(changes).blocks["model"])
    weights = [name for name, p in model.named_parameters() if p.dim() == 2 and not name.startswith("embedding")]
    assert sorted(f"{layer.name}.weight" for layer in layers(changes)) == sorted(weights)


def test_patterns_choose_and_leave_out_and_names_win_over_sizes() -> None:
    said = reasons(fp8(recipe="rowwise", include=("layers.*.attention", "head"), exclude=("*.wo", "head")))
    assert said["layers.*.attention.wk"] == ""
    assert said["layers.*.attention.wo"] == said["head"] == "excluded by a pattern"
    assert said["layers.*.mlp.w_up"] == "not named by `include`"
    one = layers(fp8(include=("layers.1",), exclude=()))
    assert Counter(layer.name.split(".")[1] for layer in one if layer.why is None) == {"1": 7}


# checks ------------------------------------------------------------------------------------------

BROKEN: list[tuple[str, dict[str, Any], list[str]]] = [
    ("FP0444", fp8(exclude=("output",)), ['"output" in apply.fp8.exclude', "layers.*.attention.wq"]),
    ("FP0444", fp8(include=("layers.*.mpl",)), ["did you mean `layers.*.mlp`"]),
    ("FP0450", {**fp8(), "cluster.arch": "sm80"}, ["sm80", "apply.fp8.emulate: true"]),
    ("FP0450", {**fp8(), "cluster.arch": "cpu", "cluster.hbm": None}, ["cpu does not multiply", "emulate: true"]),
    ("FP0451", {**fp8(), "batch.micro": 1, "batch.length": 4088, "batch.global": tokens(4088 * 64)},
     ["160 float8 layers multiply 1 · 4,088 = 4,088 rows", "batch.micro: 2 sequences, 4 sequences",
      "or batch.length = 4080 tokens with batch.global = 261_120 tokens", "layers.*.attention.wq (32)"]),
    ("FP0451", {**EMULATED, **fp8(small="convert", emulate=True), "mesh.cp": 2, "batch.micro": 1, "batch.length": 4080,
                "batch.global": tokens(4080 * 64)},
     ["1 · 4,080 ÷ 2 = 2,040 rows", "mesh.cp = 2", "batch.length = 4096 tokens"]),
    ("FP0451", {**fp8(), "mesh.tp": 2, "batch.micro": 1, "batch.length": 2064, "batch.global": tokens(2064 * 64),
                "model.mtp": 1, "model.ffn": 28_672},
     ["1 float8 layer", "1 · 2,064 ÷ 2 = 1,032 rows", "mtp.*.projection", "mesh.tp = 2"]),
    ("FP0452", {**NO_MEMORY, **fp8(include=("layers.*.moe.experts.*",)), "model.moe.experts": 8,
                "model.moe.top_k": 2}, ['"layers.*.moe.experts.*": experts keep their format']),
    ("FP0452", fp8(include=("layers.*.mlp", "norm")), ['"norm": no linear layer']),
    ("FP0452", fp8(include=("embedding", "layers.*")), ['"embedding": no linear layer']),
    ("FP0452", {**fp8(include=("head", "layers.*"), exclude=()), "model.tie": True},
     ['"head": the head is tied to the embedding']),
    ("FP0452", {**fp8(include=("layers.*.mlp",)), "model.ffn": 14_328},
     ["32 layers, K = 4,096, N = 14,328): 14,328 % 16 = 8", "model.ffn: 14_320, 14_336"]),
    ("FP0452", {**fp8(include=("layers.*.mlp",)), "model.ffn": 14_352, "mesh.tp": 2},
     ["N = 7,176): 7,176 % 16 = 8", "model.ffn: 14_336, 14_368", "mesh.tp: 1"]),
    ("FP0453", {**fp8(recipe="rowwise"), "model.dim": 512, "model.head_dim": 16},
     ["none of 225 linear layers: 224 too small to gain, 1 excluded by a pattern", "small: convert",
      "recipe: tensorwise"]),
    ("FP0453", fp8(exclude=("layers", "head")), ["225 excluded by a pattern", 'exclude: ["head"], []']),
    ("FP0454", fp8(recipe="rowwise", all_gather=True), ["recipe: tensorwise", "all_gather: false"]),
    ("FP0454", {**fp8(), "precision.compute": "fp32"}, ["precision.compute: bf16", "emulate: true"]),
]  # fmt: skip


@pytest.mark.parametrize(("code", "changes", "said"), BROKEN, ids=[f"{c}-{i}" for i, (c, _, _) in enumerate(BROKEN)])
def test_float8_that_cannot_be_is_refused_with_a_way_out(code: str, changes: dict[str, Any], said: list[str]) -> None:
    (found,) = faults({**NO_MEMORY, **changes})
    assert found.code == code
    assert [text for text in said if text not in everything(found)] == []


FINE: dict[str, dict[str, Any]] = {
    "some layers too small": fp8(recipe="rowwise"),
    "a tied head, excluded by default (row 26)": {**fp8(), "model.tie": True},
    "tensor and sequence parallel (row 27)": {**fp8(), "mesh.tp": 2},
    "emulated on a CPU (row 28)": {**EMULATED, **fp8(emulate=True, small="convert")},
    "fp32 where emulated": {**fp8(emulate=True), "precision.compute": "fp32"},
    "fp64 where emulated": {**EMULATED, **fp8(emulate=True, small="convert"), "precision.compute": "fp64"},
    "weights gathered in float8": fp8(all_gather=True),
    "a pattern for one layer": fp8(exclude=("head", "layers.31")),
    "a pattern for a kind of module": fp8(exclude=("*.wo",)),
    "a container of norms and linear layers": fp8(include=("layers.0",)),
    "a container of shared and routed experts": {
        **fp8(include=("layers.*.moe",)), "model.moe.experts": 4, "model.moe.top_k": 1, "model.moe.shared": 1,
    },
    "the head too": fp8(exclude=()),
    "sequences of an odd length in pairs": {
        **fp8(), "batch.micro": 2, "batch.length": 4088, "batch.global": tokens(4088 * 64),
    },
}  # fmt: skip


@pytest.mark.parametrize("changes", FINE.values(), ids=list(FINE))
def test_float8_that_can_be_is_taken(changes: dict[str, Any]) -> None:
    assert faults({**NO_MEMORY, **changes}) == []


def test_named_layers_that_are_small_are_converted_with_a_warning() -> None:
    found = [d for d in check(job(fp8(recipe="rowwise", include=("*.wk",)))) if d.code == "fp8-small-layers"]
    assert "layers.*.attention.wk (32 layers, K = 4,096, N = 1,024)" in everything(found[0])
    assert [d for d in check(job(fp8(recipe="rowwise", include=("*.wq",)))) if d.code == "fp8-small-layers"] == []


def test_without_fp8_nothing_is_reported() -> None:
    assert layers({}) == ()
