"""Does a proof find what is wrong with a build, name it, and say what it did in the published form?"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import jsonschema
import pytest
from attrs import evolve

from forgeplan.analysis import analyse
from forgeplan.compiler.shrink import shrink
from forgeplan.diagnostics.paint import painter
from forgeplan.plan.proof import Proof
from forgeplan.runtime import init
from forgeplan.runtime.proof_page import Page
from forgeplan.runtime.prove import Tried, certificate, tried
from forgeplan.runtime.selftest import bench as bench_module
from forgeplan.runtime.selftest.bench import Bench
from tests.house.tree import ROOT
from tests.runtime import broken_builds

SCHEMA = json.loads((ROOT / "docs/schemas/certificate.schema.json").read_text(encoding="utf-8"))
PLAN = """forge 1
plan mixture {
  cluster   = { devices_per_node = 4, arch = cpu }
  model     = decoder {
    layers  = 4, dim = 64, heads = 8, kv_heads = 4, ffn = 128, vocab = 64, context = 32 tokens, qk_norm = true
    moe     = { experts = 8, top_k = 2, first_dense = 1, shared = 1, router = sigmoid_topk { rate_schedule = cosine } }
  }
  sources   = { counter = synthetic {} }
  mesh      = { dp_shard = 2, tp = 2, ep = 2 }
  batch     = { accumulation = 4, micro = 2 sequences, length = 32 tokens }
  optimizer = adamw { lr = 3e-3, decay_embeddings = true }
  schedule  = wsd { warmup = 10%, decay = 20% }
  apply     = [recompute]
  budget    = { steps = 100 steps }
}
"""
"""Tensor and expert parallel with norms of queries and keys."""


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with Bench() as made:
        yield made


def proof_of(text: str, *overrides: str) -> Proof:
    analysis = analyse("plan.forge", text=text, overrides=overrides)
    assert not analysis.errors
    return shrink(analysis.jobs[0])


def proven(bench: Bench, proof: Proof) -> tuple[dict[str, Any], list[Tried]]:
    """The certificate, as a program reads it, and what it was made of."""
    results = list(tried(proof, bench))
    document = json.loads(json.dumps(certificate(proof, results), allow_nan=False))
    jsonschema.validate(document, SCHEMA, jsonschema.Draft202012Validator)
    return document, results


def test_a_sound_build_is_proven_in_the_published_form(bench: Bench) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    proof = proof_of(PLAN)
    document, results = proven(bench, proof)
    assert (document["verdict"], document["summary"]) == ("proven", None)
    assert document["plan"] == {"name": "mixture", "meaning": proof.plan.meaning}
    assert 0 < document["largest_deviation"]["value"] <= 1e-9
    (trial,) = document["trials"]
    assert set(trial) == set(SCHEMA["$defs"]["trial"]["properties"])
    assert trial["mesh"] == {"pp": 1, "dp_replicate": 1, "dp_shard": 2, "cp": 1, "tp": 2, "ep": 2}
    kinds = SCHEMA["$defs"]["deviation"]["properties"]["kind"]["enum"]
    assert [deviation["kind"] for deviation in trial["deviations"]] == kinds
    assert all(deviation["value"] <= deviation["within"] for deviation in trial["deviations"])
    assert {"path": "model.dim", "was": "64", "now": "32"} in trial["shrunk"]
    page = Page(proof, 80, painter(False))
    assert page.result(results[0]).startswith("same        largest deviation ")
    assert (
        page.closing(document).splitlines()[-1].startswith("proven: the trial trains what one process trains, within ")
    )


Broken = Callable[..., Any]
A_NORM = r"(initial|.* begin with other values of) (layers\.\d+\..*)?norm\.weight"
BROKEN: dict[Broken, str] = {
    broken_builds.scale_gradients_of_experts_by_ep: r"gradient of layers\.[12]\.moe\.experts\.w_\w+ is off by 1\.0",
    broken_builds.forget_to_sum_gradients_of_head_norms: r"gradient of layers\.\d\.attention\.[qk]_norm\.weight is ",
    # Memory that nobody filled holds anything: ranks agree on it, or do not.
    broken_builds.leave_norms_as_they_are: A_NORM,
    broken_builds.fill_norms_by_rank: A_NORM,
}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken.__name__)
def test_a_broken_build_is_found_and_the_tensor_named(
    broken: Broken, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench_module, "train_and_report", broken)
    proof = proof_of(PLAN)
    document, results = proven(bench, proof)
    assert document["verdict"] in ("deviates", "failed")
    assert re.match(BROKEN[broken], document["summary"])
    page = Page(proof, 80, painter(False))
    assert page.closing(document).splitlines()[-1] in (
        f"not proven, the plan trains something else: {document['summary']}",
        f"not proven, a rank failed: {document['summary']}",
    )
    tensor = next(word for word in document["summary"].split() if word.endswith("norm.weight") or "experts" in word)
    assert tensor in page.result(results[0])


def test_experts_whose_gradients_are_ep_times_too_large_are_off_by_ep_minus_one(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before clipping, nothing but experts is off in the first step: |2·g − g| ÷ |g| = 1."""
    monkeypatch.setattr(bench_module, "train_and_report", broken_builds.scale_gradients_of_experts_by_ep)
    (result,) = tried(proof_of(PLAN), bench)
    wrong = {d.what: d.value for d in result.deviations if d.kind == "gradient" and not d.is_same}
    assert list(wrong.values()) == [pytest.approx(1)] * 6
    assert {what.rpartition(".")[0] for what in wrong} == {f"gradient of layers.{i}.moe.experts" for i in (1, 2)}


def test_norms_that_nobody_initialises_are_found_where_the_reference_forgets_them_too(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A forgotten tensor has whatever was in the memory, on ranks and in one process."""
    monkeypatch.setattr(bench_module, "train_and_report", broken_builds.leave_norms_as_they_are)
    monkeypatch.setattr(init, "_fill", broken_builds.without_norms)
    document, _ = proven(bench, proof_of(PLAN, "seed=5"))
    assert document["verdict"] in ("deviates", "failed")
    assert re.match(A_NORM, document["summary"])


def test_a_rank_that_raises_is_in_the_certificate_with_its_traceback(bench: Bench) -> None:
    proof = proof_of(PLAN)
    (trial,) = proof.trials
    swapped = evolve(trial.plan, program=tuple(reversed(trial.plan.program)))
    document, results = proven(bench, evolve(proof, trials=(evolve(trial, plan=swapped),)))
    assert (document["verdict"], document["largest_deviation"]) == ("failed", None)
    assert "FP1008" in document["summary"]
    assert "Traceback" in document["trials"][0]["details"]
    assert Page(proof, 80, painter(False)).result(results[0]).startswith("failed      rank ")
