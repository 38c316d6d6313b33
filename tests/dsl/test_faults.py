"""Is every fault told, once, at its place, in one order?"""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

from tests.dsl.plans import CONTEXT, at, described, extended, read

TWENTY = """
seed = "3"
precision = { compute = bfloat16, redcue = fp32 }
cluster.hbm = 80
model.layers = 0
model.heads = model.dim / 96
model.ffn = model.vocab * 3 ** 5_000
model.vocab = model.ffn2
model.tie = 1
model.mlp = swiglue
model.window = 3 steps
optimizer = adamw { betas = [0.9], lr = unknown_rate, weight_deacy = 0.1, eps = 1 / 0 }
schedule = adamw { lr = 1 }
mesh = { dp_shard = 2, dp_shard = 4 }
batch = { global = 2Mi tokens, micro = 4 sequences }
metrics.every = 5
guard.clip = 0
let bf16 = 3
delete eval.nothing
"""
EXPECTED = [
    ("FP0307", '"3"'),
    ("FP0311", "bfloat16"),
    ("FP0301", "redcue"),
    ("FP0309", "80"),
    ("FP0310", "0"),
    ("FP0312", "model.dim / 96"),
    ("FP0314", "3 ** 5_000"),
    ("FP0201", "ffn2"),
    ("FP0307", "1"),
    ("FP0311", "swiglue"),
    ("FP0308", "3 steps"),
    ("FP0307", "[0.9]"),
    ("FP0201", "unknown_rate"),
    ("FP0301", "weight_deacy"),
    ("FP0313", "1 / 0"),
    ("FP0210", "adamw"),
    ("FP0303", "dp_shard"),
    ("FP0302", "{"),
    ("FP0309", "5"),
    ("FP0310", "0"),
    ("FP0208", "bf16"),
    ("FP0304", "nothing"),
]


def test_many_independent_faults_give_as_many_diagnostics_at_their_places() -> None:
    """Quality 3 of the language, with two faults to spare."""
    loaded = extended(TWENTY)
    assert [(d.code, at(loaded, d)) for d in loaded.diagnostics] == EXPECTED


TWELVE = (
    CONTEXT
    + """
plan example extends context {
  sed       = 3
  mesh      = { dp_shrad = 2 }
  optimizer = adamw { lr = 3e-4, wegiht_decay = 0.1 }
  guard.clp = 1
  batch.micro     = 4
  batch.length    = 8GiB
  model.window    = 4 steps
  model.layers    = 0
  model.dropout   = 1.0
  model.ffn       = model.kv_heads
  model.kv_heads  = model.ffn / 2
  model.vocab     = vocabulary
  schedule        = wsd { warmup = 1% }
}
"""
)


def test_twelve_faults_come_sorted_and_in_the_same_bytes_for_every_hash_seed(tmp_path: Path) -> None:
    """Case C013."""
    path = tmp_path / "plan.forge"
    path.write_text(TWELVE, encoding="utf-8")
    program = (
        "import sys\nfrom forgeplan.dsl.load import load\nfrom forgeplan.compiler import derived_values\n"
        "for d in load(sys.argv[1], derived=derived_values()).diagnostics: print(d)\n"
    )
    outputs = set()
    for seed in ("0", "1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, "-c", program, str(path)], env=environment, capture_output=True, text=True, check=True
        )
        outputs.add(done.stdout)
    assert len(outputs) == 1
    loaded = read(TWELVE)
    keys = [d.sort_key()[:3] for d in loaded.diagnostics]
    assert keys == sorted(keys)
    assert sorted(d.code for d in loaded.diagnostics) == sorted(
        ["FP0301"] * 4 + ["FP0309", "FP0308", "FP0308"] + ["FP0310"] * 2 + ["FP0203", "FP0201", "FP0302"]
    )


def test_a_fault_of_a_base_is_told_once_for_all_that_extend_it() -> None:
    text = CONTEXT + "plan a extends context { seed = true }\nplan b extends a { profile p {} }\nplan c extends b {}\n"
    assert described(read(text).diagnostics) == ["FP0307: `seed` takes a whole number, not `true`"]


def test_a_fault_of_a_profile_names_the_view() -> None:
    (fault,) = extended("profile p { model.layers = 0 }").diagnostics
    assert fault.view == "example@p"


def test_what_could_not_be_read_is_not_also_missing() -> None:
    loaded = extended("batch = { global = 2Mi tokens, micro 4 sequences, length = 4Ki tokens }")
    assert [d.code for d in loaded.diagnostics] == ["FP0103"]
    loaded = read(CONTEXT.replace("model     = llama3_8b { context = 4Ki tokens }", "model     = )"))
    assert {d.code for d in loaded.diagnostics} <= {"FP0103", "FP0104"}


def test_nothing_is_said_about_values_that_a_fault_reaches() -> None:
    loaded = extended("let k = unknown_thing\nseed = k\nmodel.layers = seed + k\nassert model.layers == 3")
    assert [(d.code, at(loaded, d)) for d in loaded.diagnostics] == [("FP0201", "unknown_thing")]


def test_reading_ends_where_brackets_of_two_kinds_are_crossed() -> None:
    loaded = extended(
        "metrics = { every = 10 steps, sinks = [tensorboard} ]\neval held { source = web, every = 1 step }"
    )
    assert loaded.diagnostics


def test_a_key_in_quotes_is_read_as_the_name_that_it_is() -> None:
    loaded = extended('optimizer = adamw { "lr": 3e-4, "betas" = [0.9, 0.95] }')
    assert [d.code for d in loaded.diagnostics] == ["FP0110", "FP0110"]
    assert loaded.job("example").leaves["optimizer.lr"].value == Fraction(3, 10_000)
