"""From which value on does a lint speak, and what keeps it silent?"""

from __future__ import annotations

from pathlib import Path

import pytest

from forgeplan.analysis import analyse

PLAN = """forge 1

partial plan base {
  cluster   = { devices_per_node = 2, arch = ARCH, hbm = 80GB, bf16 = 989TFLOP/s }
  model     = decoder { layers = 4, dim = 256, heads = 4, vocab = 256, context = 64 tokens }
  sources   = { count = synthetic { states = 256 } }
  batch     = { global = 64 sequences, micro = 2 sequences, length = 64 tokens }
  optimizer = adamw { lr = 1e-3 }
  budget    = { steps = 100 steps }
}

plan small extends base {
  MORE
}
"""
PIPELINE = "mesh = { pp = 2, dp_shard = 1 }, batch.global = %s sequences"
SPLIT = f"{PIPELINE % 64}, apply = [pp {{ schedule = %s }}, recompute {{ mode = %s }}]"


def lints(folder: Path, more: str, arch: str = "sm90", settings: str = "") -> list[str]:
    (folder / "forge.toml").write_text(settings, encoding="utf-8")
    text = PLAN.replace("ARCH", arch).replace("MORE", more)
    return [one.code for one in analyse(str(folder / "a.forge"), text=text).diagnostics]


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (PIPELINE % 6, []),  # (2 - 1) / (3 + 2 - 1): a quarter, which is the most
        (PIPELINE % 4, ["pipeline-bubble"]),
        (PIPELINE % 4 + ", apply = [pp { schedule = interleaved }]", []),  # 1 / (2·2 + 1)
        (SPLIT % ("zero_bubble", "full"), ["split-backward-recompute"]),
        (SPLIT % ("interleaved", "full"), []),
        (SPLIT % ("zero_bubble", "every"), []),
        ("schedule = cosine {}", []),
        ("schedule = cosine { warmup = 20% }", []),
        ("schedule = cosine { warmup = 21 steps }", ["unusual-rate"]),
        ("schedule = constant { warmup = 0 steps }", ["unusual-rate"]),
        ("optimizer.lr = 3e-3", []),
        ("optimizer.lr = 3.1e-3", ["unusual-rate"]),
        ("apply = [fp8 { small = convert }]", ["fp8-without-compile"]),
        ("apply = [fp8 { small = convert }, compile]", []),
        ("apply = [fp8 { small = convert, emulate = true }]", []),
        ('sources.count = tokens { path = "/data/x.npy" }', ["absolute-path"]),
        ('sources.count = tokens { path = "~/x.npy" }', ["absolute-path"]),
        ('sources.count = tokens { path = "data/x.npy" }', []),
        ("batch.global = 8k tokens, batch.length = 50 tokens, batch.micro = 2 sequences", []),
        ("batch.global = 8_192 tokens, model.context = 4k tokens", []),
        ("batch.length = 1k tokens, model.context = 1Ki tokens", ["mixed-decimal-binary"]),
    ],
)
def test_a_lint_speaks_from_its_threshold_on(tmp_path: Path, more: str, told: list[str]) -> None:
    assert lints(tmp_path, more) == told


@pytest.mark.parametrize(
    ("more", "arch", "told"),
    [
        ("cluster.hbm = none", "sm90", ["unknown-fact"]),
        ("cluster.hbm = none", "cpu", []),
        ("seed = 1", "sm90", []),
        ("apply = [compile]", "sm90", []),
        ("apply = [compile], model.moe = { experts = 8, top_k = 2 }", "sm90", ["compile-graph-breaks"]),
    ],
)
def test_what_is_allowed_by_default_speaks_on_request(tmp_path: Path, more: str, arch: str, told: list[str]) -> None:
    settings = '[lints]\nunknown-fact = "warn"\ncompile-graph-breaks = "warn"\n'
    assert lints(tmp_path, more, arch, settings) == told
    assert lints(tmp_path, more, arch) == []
