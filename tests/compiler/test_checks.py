"""Does every rule speak where it should, with the values and a way out, and keep silent elsewhere?"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import attrs
import pytest

from forgeplan.compiler import check, check_together, emit
from forgeplan.diagnostics.diagnostic import Diagnostic, Severity
from forgeplan.spec.quantity import SECONDS, SEQUENCES, Quantity
from tests.compiler.jobs import job, ratio, share, steps, tokens

LARGE = {"model.layers": 80, "model.dim": 8192, "model.heads": 64, "model.ffn": 28_672}
TEXT = {"sources": {"t": "text"}, "sources.t.path": "a.txt"}
RAW = {"sources.web.path": "t/*.bin"}
COUNT = {"sources": {"c": "synthetic"}}
LLAMA3 = {"model.rope.scaling": "llama3", "model.rope.scaling.factor": Fraction(8), "model.rope.scaling.original": 4096}
YARN = {"model.rope.scaling": "yarn", "model.rope.scaling.factor": Fraction(8), "model.rope.scaling.original": 4096}
NTK = {"model.rope.scaling": "ntk", "model.rope.scaling.factor": Fraction(8), "model.rope.scaling.original": 4096}
TWO = {"sources": {"web": "tokens", "b": "tokens"}, "sources.b.path": "b/*.npy"}


def held(name: str, percent: int | None, **more: Any) -> dict[str, Any]:
    return {f"eval.{name}.source": "web", f"eval.{name}.every": steps(500),
            f"eval.{name}.split": None if percent is None else Fraction(percent, 100),
            **{f"eval.{name}.{k}": v for k, v in more.items()}}  # fmt: skip


def errors(changes: dict[str, Any]) -> list[Diagnostic]:
    return [d for d in check(job(changes)) if d.severity is Severity.ERROR]


def everything(found: Diagnostic) -> str:
    return " ".join([found.message, *found.help, *found.notes, *(label.text for label in found.labels)])


BROKEN: list[tuple[str, dict[str, Any], list[str]]] = [
    ("FP0401", {"mesh.dp_replicate": 2, "mesh.dp_shard": 4}, ["2 · 4 = 8 ranks", "4 devices", "mesh.dp_shard: 2"]),
    ("FP0402", {"mesh.dp_replicate": 3}, ["4 ÷ 3 = 1 remainder 1", "1, 2, 4"]),
    ("FP0407", {"batch.global": tokens(10**6)}, ["15 265/1024", "983_040 tokens, 1_048_576 tokens"]),
    ("FP0407", {"batch.global": Quantity(30, SEQUENCES)}, ["1 7/8", "16 sequences, 32 sequences"]),
    ("FP0407", {"batch.global": tokens(4096)}, ["1/16", "65_536 tokens"]),
    ("FP0407", {"cluster.devices_per_node": 4, "batch.global": tokens(60_000), "batch.micro": 2, "batch.length": 1024},
     ["57_344 tokens, 65_536 tokens"]),
    ("FP0415", {"model.pad_vocab": 128_000}, ["256 of 128,256"]),
    ("FP0436", {"apply": {"fsdp": 0}, "apply.fsdp.reshard": 3}, ["4 % 3 = 1", "1, 2, 4"]),
    ("FP0440", {"apply": {"fsdp": 0, "recompute": 0}}, ["gathered twice", "apply = [recompute, fsdp]"]),
    ("FP0501", {"model.heads": 24}, ["4,096 % 24 = 16", "8, 16, 32", "4080, 4128"]),
    ("FP0502", {"model.kv_heads": 5}, ["32 % 5 = 2", "1, 2, 4, 8, 16, 32"]),
    ("FP0503", {"model.head_dim": 63}, ["63 is odd", "62, 64"]),
    ("FP0504", {**LLAMA3, "model.rope.scaling.original": 8192}, ["8192 tokens", "4096 tokens"]),
    ("FP0504", {**LLAMA3, "model.rope.scaling.low": Fraction(4)}, ["low = 4", "high = 4"]),
    ("FP0504", {**YARN, "model.rope.theta": Fraction(1)}, ["theta = 1", "above 1"]),
    ("FP0504", {**NTK, "model.head_dim": 2}, ["head_dim = 2", "at least 4"]),
    ("FP0505", {"batch.length": 8192}, ["8192 tokens", "4096 tokens", "model.context: 8192"]),
    ("FP0506", {"model.attention": "efficient", "model.window": 1024}, ["window of 1024 tokens", "auto, flash, flex"]),
    ("FP0506", {"model.attention": "flash", "model.softcap": Fraction(50)}, ["a soft cap of 50", "auto, flex"]),
    ("FP0506", {"model.attention": "cudnn", "batch.pack": True, "tokenizer": "byte"}, ["packed documents"]),
    ("FP0506", {"model.attention": "flash", "precision.compute": "fp32"}, ["in fp32"]),
    ("FP0506", {"model.attention": "flash", "model.head_dim": 512}, ["width 512, above 256"]),
    ("FP0506", {"model.attention": "flash", "model.head_dim": 36}, ["width 36"]),
    ("FP0506", {"model.attention": "flex", "cluster.arch": "cpu", "precision.compute": "fp32"}, ["backward pass"]),
    ("FP0506", {"model.attention": "cudnn", "cluster.arch": "gfx942"}, ["on gfx942"]),
    ("FP0506", {"model.attention": "efficient", "apply": {"cp": 0}, "apply.cp.attention": "ring", "mesh.cp": 2},
     ["ring attention", "auto, flash, math"]),
    ("FP0506", {"model.attention": "flash", "mesh.cp": 2}, ["gathered keys", "auto, efficient, math, flex"]),
    ("FP0507", {"model.ffn_multiplier": Fraction(13, 10)}, ["14,336", "14,336"]),
    ("FP0601", {"mixture": {"wbe": share(100)}}, ["`wbe`", "did you mean `web`?"]),
    ("FP0602", {"sources": {}}, ["no source"]),
    ("FP0602", TWO, ["2 sources", "web = 50%, b = 50%"]),
    ("FP0603", {"mixture": {"web": ratio(0)}}, ["web"]),
    ("FP0603", {"mixture": {}}, ["empty"]),
    ("FP0604", {"mixture": {"web": share(85)}}, ["85%", "web = 100%"]),
    ("FP0604", {**TWO, "mixture": {"web": share(85), "b": share(10)}}, ["85% + 10% = 95%", "web = 85, b = 10"]),
    ("FP0604", {**TWO, "mixture": {"web": share(85), "b": ratio(1)}}, ["percentages (web)", "ratios (b)"]),
    ("FP0605", RAW, ["`.bin`", "uint16, for a vocabulary of up to 65,536"]),
    ("FP0607", {**RAW, "sources.web.dtype": "uint16"}, ["65,535", "128,255", "uint32"]),
    ("FP0608", TEXT, ["`t` is text", "byte {}"]),
    ("FP0608", {"batch.pack": True}, ["`web` is packed"]),
    ("FP0609", {"tokenizer": "byte", "model.vocab": 256}, ["257 ids", "model.vocab: 257"]),
    ("FP0609", {**COUNT, "sources.c.states": 100, "sources.c.document": 10, "model.vocab": 100}, ["101 different ids"]),
    ("FP0617", {**COUNT, "eval": {"e": 0}, **held("e", None), "eval.e.source": "c"}, ["no end", "batches = 50"]),
    ("FP0618", {"eval": {"a": 0, "b": 0}, **held("a", 60), **held("b", 40)}, ["100% of source `web`"]),
    ("FP0702", {"schedule.warmup": steps(200_000)}, ["76,294 steps", "76_294 steps"]),
    ("FP0702", {"schedule": "wsd", "schedule.warmup": share(60), "schedule.decay": share(50)}, ["60%", "50%"]),
    ("FP0702", {"budget.tokens": None, "budget.steps": 4, "schedule": "wsd", "schedule.warmup": share(60),
                "schedule.decay": share(50)}, ["60% (2.4 steps)", "4.4 steps of 4 steps: 0.4 too many"]),
    ("FP0703", {"budget.tokens": None, "budget.wall": Fraction(259_200)}, ["cosine", "wall = 72h"]),
    ("FP0703", {"budget.tokens": None, "budget.wall": Fraction(60), "schedule": "constant",
                "schedule.warmup": share(3)}, ["warmup = 3%"]),
    ("FP0713", {"precision.compute": "fp64"}, ["sm90", "fp32, bf16"]),
    ("FP0802", {"checkpoint.every": steps(5), "checkpoint.path": "../../elsewhere"}, ["forge.toml", "--set"]),
    ("FP0901", {**LARGE, "mesh.dp_replicate": 4}, ["1.03 TiB", "131.3 GiB", "they fit on 9 devices with"]),
    ("FP0902", {"budget.steps": 1000}, ["160_000_000_000 tokens", "1,000 steps"]),
    ("FP0902", {"budget.tokens": None}, ["nothing bounds the run"]),
]  # fmt: skip

LINTS: list[tuple[str, dict[str, Any]]] = [
    ("unused-source", {**TWO, "mixture": {"web": share(100)}}),
    ("eval-on-training-data", {"eval": {"e": 0}, **held("e", None)}),
    ("low-precision-state", {"precision.params": "bf16"}),
    ("low-precision-state", {"precision.reduce": "bf16"}),
    ("unusual-rate", {"optimizer.lr": Fraction(3, 10)}),
    ("no-checkpoint", {"budget.wall": Fraction(259_200)}),
    ("setting-without-effect", {"model.window": 8192}),
    ("setting-without-effect", {"cluster.devices_per_node": 1, "apply": {"fsdp": 0}, "apply.fsdp.reshard": "never"}),
    ("never-fires", {"checkpoint.every": steps(10**6)}),
    ("never-fires", {"eval": {"e": 0}, **held("e", 1), "eval.e.every": tokens(10**12)}),
]

FINE: dict[str, dict[str, Any]] = {
    "the context": {},
    "one device": {"cluster.devices_per_node": 1},
    "a CPU cluster": {"cluster.arch": "cpu", "precision.compute": "fp32", "cluster.hbm": None},
    "fp64 on a CPU": {"cluster.arch": "cpu", "cluster.hbm": None, "precision.compute": "fp64"},
    "only what the author cares about": {"cluster.devices_per_node": 1, "apply": {"recompute": 0}},
    "replicas only": {"mesh.dp_replicate": 4, "mesh.dp_shard": 1},
    "replicas of shards": {"mesh.dp_replicate": 2, "mesh.dp_shard": 2},
    "multi-query attention": {"model.kv_heads": 1},
    "odd degrees": {"cluster.devices_per_node": 3, "batch.global": Quantity(504, SEQUENCES), "batch.length": 4095},
    "heads wider than the model": {"model.heads": 16, "model.head_dim": 128, "model.kv_heads": 8, "model.dim": 1024},
    "shapes that do not divide": {"model.dim": 4160, "model.heads": 32, "model.head_dim": 130},
    "reshard by number": {"apply": {"fsdp": 0}, "apply.fsdp.reshard": 4},
    "reshard to one": {"apply": {"fsdp": 0}, "apply.fsdp.reshard": 1},
    "warm-up of the whole run": {"schedule.warmup": share(100)},
    "warm-up and decay that fill a run": {"schedule": "wsd", "schedule.warmup": share(50), "schedule.decay": share(50)},
    "no warm-up and no fall": {"schedule.floor": Fraction(1)},
    "a token budget that is no whole number of steps": {"budget.tokens": 1_000_000_007},
    "a source of weight zero": {**TWO, "mixture": {"web": share(100), "b": share(0)}},
    "keep one": {"checkpoint.every": Quantity(3600, SECONDS), "checkpoint.keep": 1},
    "sources without files": {**COUNT, "mixture": {"c": share(100)}},
    "no tokenizer with token files": {"tokenizer": None},
    "bounded by wall time alone": {"budget.tokens": None, "budget.wall": Fraction(60), "schedule": "constant"},
    "131,072 devices": {"cluster.nodes": 32_768, "batch.global": tokens(2 * 2**30)},
    "the global batch in sequences": {"batch.global": Quantity(512, SEQUENCES)},
}  # fmt: skip


@pytest.mark.parametrize(("code", "changes", "said"), BROKEN, ids=[f"{c}-{i}" for i, (c, _, _) in enumerate(BROKEN)])
def test_a_broken_rule_is_named_with_its_values_and_a_way_out(
    code: str, changes: dict[str, Any], said: list[str]
) -> None:
    found = errors(changes)
    assert [d.code for d in found] == [code]
    for text in said:
        assert text in everything(found[0])
    assert found[0].labels or code in ("FP0440", "FP0602")


@pytest.mark.parametrize(("name", "changes"), LINTS, ids=[f"{c}-{i}" for i, (c, _) in enumerate(LINTS)])
def test_what_is_most_likely_unwanted_is_a_warning(name: str, changes: dict[str, Any]) -> None:
    found = check(job(changes))
    assert [(d.code, d.severity) for d in found] == [(name, Severity.WARNING)]


@pytest.mark.parametrize("changes", FINE.values(), ids=FINE)
def test_what_runs_is_not_rejected(changes: dict[str, Any]) -> None:
    assert errors(changes) == []
    assert emit(job(changes)).file


def test_one_value_that_breaks_two_rules_is_one_message() -> None:
    """dp_replicate = 3 on 4 devices leaves a remainder, and makes the batch uneven."""
    (found,) = errors({"mesh.dp_replicate": 3})
    assert found.code == "FP0402"
    assert any(note.startswith("FP0407: ") for note in found.notes)


def test_a_run_with_two_ends_is_not_judged_by_one_of_them() -> None:
    (fault,) = check(job({"budget.steps": 1000, "schedule.warmup": steps(2000)}))
    assert fault.code == "FP0902"


def test_faults_with_causes_of_their_own_are_reported_apart() -> None:
    found = errors({"model.kv_heads": 5, "mixture": {"web": share(85)}, "batch.length": 8192})
    assert sorted(d.code for d in found) == ["FP0502", "FP0505", "FP0604"]


def test_legal_values_satisfy_every_rule_not_only_the_broken_one() -> None:
    """8 replicas would be whole on 8 devices, but not with this batch."""
    (found,) = errors(
        {"cluster.devices_per_node": 8, "mesh.dp_replicate": 3, "batch.global": tokens(10 * 8 * 4 * 4096)}
    )
    assert "legal values of mesh.dp_replicate: 1, 2, 4, 8" in found.help


def test_a_rejected_value_silences_the_checks_that_read_it() -> None:
    made = job({"model.kv_heads": 5, "mixture": {"web": share(85)}})
    leaves = {path: leaf for path, leaf in made.leaves.items() if path != "model.heads"}
    blocks = {path: block for path, block in made.blocks.items() if path != "model"}
    partial = attrs.evolve(made, leaves=leaves, blocks=blocks, plan=None)
    assert [d.code for d in check(partial)] == ["FP0604"]


def test_a_view_is_named_if_it_is_not_the_plan_itself() -> None:
    (found,) = check(job({"model.kv_heads": 5}, name="example@smoke"))
    assert found.view == "example@smoke"


def test_values_without_a_place_are_told_in_a_note() -> None:
    (found,) = errors({"mesh.dp_shard": 8})
    assert "mesh.dp_replicate = 1 (schema default)" in " ".join(found.notes)


def test_two_plans_that_write_to_one_place_are_told_of_each_other() -> None:
    written = {"checkpoint.every": steps(5), "checkpoint.path": "ckpt"}
    (found,) = check_together([job(written, name="a"), job(written, name="b"), job(name="c")])
    assert found.code == "FP0803"
    assert "`a`, `b`" in found.message


def test_a_profile_may_write_where_its_plan_writes() -> None:
    written = {"checkpoint.every": steps(5), "checkpoint.path": "ckpt"}
    assert check_together([job(written, name="a"), job(written, name="a@smoke")]) == []


def test_a_wide_plan_is_checked_in_well_under_a_second() -> None:
    import time

    made = job({"cluster.nodes": 32_768, "mesh.dp_replicate": 3, "batch.global": tokens(10**9)})
    start = time.perf_counter()
    check(made)
    assert time.perf_counter() - start < 2


@pytest.mark.parametrize(
    "path",
    ["model.vocab", "model.dim", "model.ffn", "model.heads", "model.kv_heads", "model.head_dim", "model.context",
     "model.window", "batch.micro", "batch.length", "mesh.dp_replicate", "mesh.dp_shard", "budget.tokens",
     "budget.steps", "cluster.hbm", "metrics.every", "seed"],
)  # fmt: skip
def test_a_number_without_measure_is_answered_at_once(path: str) -> None:
    """10³⁰⁰ is beyond every machine and beyond every loop that counts to it."""
    import time

    start = time.perf_counter()
    made = job({"model.head_dim": 128, path: 10**300 + 2})
    found = check(made)
    if not [d for d in found if d.severity is Severity.ERROR]:
        from forgeplan.compiler.explain import explain

        explain(emit(made))
    assert time.perf_counter() - start < 3
