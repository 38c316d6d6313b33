"""Are the layouts that users of other systems found out about too late refused before a process starts?

Each test names the case it is about.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from forgeplan.analysis import analyse
from forgeplan.compiler import check
from forgeplan.compiler.checking import facts_of
from forgeplan.compiler.passes.manager import Results
from forgeplan.diagnostics.diagnostic import Diagnostic, Safety, Severity
from forgeplan.spec.quantity import SEQUENCES, Quantity
from tests.compiler.jobs import job, tokens
from tests.compiler.test_checks import everything
from tests.docs.harness import FILE, diagnose, whole

SMALL = {
    "model.layers": 4, "model.dim": 64, "model.heads": 4, "model.kv_heads": 2, "model.ffn": 128, "model.vocab": 256,
}  # fmt: skip
EXPERTS = SMALL | {"model.moe.experts": 8, "model.moe.top_k": 2}
SHIPPED = Path(__file__).parents[2] / "plans"


def errors(changes: dict[str, Any]) -> list[Diagnostic]:
    return [d for d in check(job(changes)) if d.severity is Severity.ERROR]


def sequences(number: int) -> Quantity:
    return Quantity(number, SEQUENCES)


def test_more_tensor_ranks_than_key_and_value_heads_are_refused() -> None:
    """Case C020: 2 heads on 4 ranks."""
    (found,) = errors({**SMALL, "model.heads": 8, "mesh.tp": 4})
    assert found.code == "FP0413"
    assert "2 % 4 = 2" in found.message
    assert "legal values of mesh.tp: 1, 2" in found.help


def test_key_and_value_heads_that_tensor_ranks_do_not_divide_are_refused() -> None:
    """Case C020: 3 heads on 2 ranks."""
    shape = {"cluster.devices_per_node": 6, "model.heads": 6, "model.kv_heads": 3, "model.ffn": 96, "model.dim": 96}
    batch = {"batch.global": sequences(504), "batch.length": 4092}
    (found,) = errors({**SMALL, **shape, **batch, "mesh.tp": 2})
    assert found.code == "FP0413"
    assert "3 % 2 = 1" in found.message
    assert "legal values of mesh.tp: 1, 3" in found.help
    kept = errors({**SMALL, **shape, **batch, "mesh.tp": 2, "apply": {"tp": 0}, "apply.tp.kv": "replicate"})
    assert [d.code for d in kept] == ["FP0413"]


def test_experts_that_the_expert_ranks_do_not_divide_are_refused() -> None:
    """Case C022."""
    (found,) = errors({**EXPERTS, "model.moe.experts": 6, "mesh.dp_shard": 4, "mesh.ep": 4})
    assert found.code == "FP0405"
    assert [part for part in ("6 experts", "layers.0", "4 ranks", "6 % 4 = 2") if part not in found.message] == []
    assert "legal values of mesh.ep: 1, 2" in found.help


@pytest.mark.parametrize(
    ("layout", "code"),
    [({"mesh.tp": 4, "model.kv_heads": 4}, "FP0416"), ({"mesh.cp": 2, "cluster.arch": "cpu"}, "FP0419")],
)
def test_a_sequence_that_its_ranks_do_not_divide_is_refused(layout: dict[str, Any], code: str) -> None:
    """Case C023: 1,022 tokens over 4 tp ranks, or over an early and a late part of 2 cp ranks."""
    batch = {"batch.global": sequences(512), "batch.length": 1022, "precision.compute": "fp32"}
    (found,) = errors({**SMALL, **batch, **layout})
    assert found.code == code
    assert "legal values of batch.length: 1020 tokens, 1024 tokens" in found.help


def test_a_pipeline_with_a_tied_embedding_is_refused_with_both_edits() -> None:
    """Case C024."""
    (found,) = errors({**SMALL, "model.tie": True, "mesh.pp": 2})
    assert found.code == "FP0427"
    assert "a pipeline with a tied embedding" in found.message
    assert [[edit.replacement for edit in fix.edits] for fix in found.fixes] == [["false"], ["1"]]


def test_transforms_in_the_wrong_order_are_one_message_that_says_what_breaks() -> None:
    """Case C027."""
    (found,) = errors({**SMALL, "mesh.tp": 2, "apply": {"fsdp": 0, "tp": 0, "recompute": 0}})
    assert found.code == "FP0440"
    assert "`fsdp` stands before `tp`" in found.message
    assert "in order: apply = [tp, recompute, fsdp]" in found.help
    assert "gathered twice" in " ".join(found.notes)


def test_transforms_that_are_left_out_stand_where_they_belong() -> None:
    """Case C027: `tp` follows from the mesh."""
    program = Results(facts_of(job({**SMALL, "mesh.tp": 2, "apply": {"recompute": 0}})))["program"]
    assert [o.name for o in program] == ["build", "tp", "recompute", "fsdp", "materialise", "initialise"]
    assert {o.name: o.placed_by for o in program if o.placed_by != "always"} == {"tp": "mesh", "recompute": "plan"}


BATCH = {"cluster.devices_per_node": 8, "mesh.tp": 2, "mesh.dp_shard": 4, "batch.micro": 2, "batch.length": 1024}


def test_tensor_ranks_are_no_data_ranks() -> None:
    """Case C028."""
    made = job({**SMALL, **BATCH, "batch.global": tokens(64 * 1024)})
    assert (made.derived["mesh.data_ranks"], made.leaves["batch.accumulation"].value) == (4, 8)
    (found,) = errors({**SMALL, **BATCH, "batch.global": tokens(60_000)})
    assert found.code == "FP0407"
    assert "legal values of batch.global: 57_344 tokens, 65_536 tokens" in found.help
    assert "mesh.tp = 2 does not multiply the batch" in " ".join(found.notes)


@pytest.mark.parametrize("axes", [{"mesh.pp": 2}, {"mesh.tp": 2}, {"mesh.cp": 2}, {"mesh.dp_shard": 2, "mesh.ep": 2}])
def test_only_data_axes_multiply_the_batch(axes: dict[str, int]) -> None:
    """Case C028, for every axis: 2 of 4 devices are left to the data, or experts take none away."""
    changes = {**EXPERTS, "cluster.devices_per_node": 2 if "mesh.ep" in axes else 4, **axes}
    made = job({**changes, "batch.global": tokens(64 * 1024), "batch.micro": 2, "batch.length": 1024})
    assert (made.derived["mesh.data_ranks"], made.leaves["batch.accumulation"].value) == (2, 16)


COMMON = {
    "FP0401": {"mesh.tp": 2, "mesh.dp_shard": 4},
    "FP0412": {"model.heads": 6, "model.kv_heads": 6, "model.head_dim": 16, "mesh.tp": 4},
    "FP0413": {"model.heads": 8, "mesh.tp": 4},
    "FP0430": {"model.layers": 1, "mesh.pp": 4},
    "FP0404": {"mesh.dp_shard": 4, "mesh.ep": 2},
    "FP0407": {"batch.global": tokens(10**6)},
}


@pytest.mark.parametrize(("code", "changes"), COMMON.items(), ids=COMMON)
def test_a_common_mistake_has_a_code_its_values_and_a_way_out(code: str, changes: dict[str, Any]) -> None:
    """Case C033, its first six plans."""
    start = time.perf_counter()
    (found,) = errors({**SMALL, **changes})
    assert time.perf_counter() - start < 1
    assert found.code == code
    assert found.labels
    assert "legal value" in everything(found)


@pytest.mark.parametrize(
    "changes",
    [
        {"apply": {"tp": 0}, "apply.tp.sequence": True, "mesh.tp": 1},
        {"apply": {"pp": 0}, "apply.pp.schedule": "interleaved", "apply.pp.stages_per_rank": 2, "mesh.pp": 1},
    ],
    ids=["sequence parallel with tp 1", "interleaved with pp 1"],
)
def test_a_transform_without_an_axis_is_told_to_have_no_effect(changes: dict[str, Any]) -> None:
    """Case C033, its last two plans, which run: a lint."""
    (found,) = check(job({**SMALL, **changes}))
    assert (found.code, found.severity) == ("setting-without-effect", Severity.WARNING)
    assert "above 1" in found.help[0]


def test_a_fix_that_only_takes_back_what_does_nothing_is_safe() -> None:
    (found,) = errors({**SMALL, "mesh.dp_shard": 4, "mesh.ep": 2})
    assert [(fix.safety, fix.edits[0].replacement) for fix in found.fixes] == [(Safety.SAFE, "1")]


@pytest.mark.parametrize("word", ["fp16", "half", "float16"])
def test_half_precision_is_refused_with_what_has_its_width(word: str) -> None:
    """Case C034: without a loss scaler, gradients below 6e-8 vanish."""
    text = (SHIPPED / "quickstart.forge").read_text(encoding="utf-8")
    end = text.rindex("}")
    analysis = analyse("half.forge", text=f"{text[:end]}  precision = {{ compute = {word} }}\n{text[end:]}")
    (found,) = analysis.errors
    assert found.code == "FP0311"
    assert f"`{word}`" in found.message
    assert "loss scaler" in everything(found)
    assert "`bf16`" in everything(found)


def test_an_order_is_shown_with_the_options_that_stand_in_it() -> None:
    """A plan that adds options to the list of its base would lose them by what the help shows."""
    text = whole("apply = [recompute]\napply += [tp { sequence = false }]\nmesh.tp = 2")
    (found,) = diagnose({FILE: text})[0]
    assert (found.code, found.help) == ("FP0440", ("in order: apply = [tp { … }, recompute]",))
