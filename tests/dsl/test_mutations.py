"""Does one changed token give about one message, close to it, and never a traceback?"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from attrs import frozen

from forgeplan.diagnostics.diagnostic import Diagnostic
from forgeplan.dsl.lexer import lex
from tests.dsl.reading import clean, read

MUTATIONS = 500

DENSE = """forge 1

from "std:clusters" import h200_node
from "std:models" import llama3_8b

## Peak learning rate after warm-up.
param peak_lr: Rate(1e-6 .. 1e-2) = 3e-4

let length = 4Ki tokens  # Ki, Mi, Gi are powers of two

plan dense_8b {
  cluster   = h200_node { devices_per_node = 4 }
  seed      = 17
  model     = llama3_8b { context = length }
  tokenizer = bpe { path = "tokenizers/llama3" }
  precision = { params = fp32, compute = bf16, reduce = fp32, moments = bf16 }

  sources = {
    web  = tokens { path = "shards/web/*.npy" }
    code = tokens { path = "shards/code/${plan.name}/*.npy" }
  }
  mixture = { web = 85%, code = 15% }

  batch     = { global = 2Mi tokens, micro = 4 sequences, length = length }
  optimizer = adamw { lr = peak_lr, betas = [0.9, 0.95], weight_decay = 0.1 }
  schedule  = cosine { warmup = 3%, floor = 10% }

  mesh  = { dp_replicate = 2 }
  apply = [
    recompute { mode = full },
    fsdp,
  ]

  budget     = { tokens = 6B tokens, wall = 72h }
  checkpoint = { every = 30min, keep = 3 }
  guard      = { clip = 1.0, nonfinite = skip { budget = 10 steps } }
  eval held_out { source = web, split = 1%, every = 500 steps, batches = 50 }

  assert checkpoint.every <= 1h else "this queue preempts without notice"

  profile smoke {
    model.layers = 2
    batch.global = 64Ki tokens
    delete eval.held_out
  }
}
"""
FAMILY = """forge 1

import "lib/hw.forge" as hw

let widths = [for w in [64, 128, 256] if w > 64: w * 2]
let deep   = if len(widths) > 2 then 12 else 6

partial plan base {
  cluster = hw.node { nodes = 1, arch = cpu }
  model   = decoder {
    layers  = deep
    dim     = widths[0]
    heads   = self.dim / 64
    vocab   = 256
    context = 256 tokens
  }
  warn model.params <= 20M and model.layers in 2 .. 48
}

plan small extends base {
  model.rope.theta = 8_000_000
  batch.micro      = 1 sequence
  optimizer        = base.optimizer { lr = 2 * 1e-4 }
}

sweep lr_scan over small {
  axis optimizer.lr in [1e-4, 2e-4, 3e-4]
  axis seed in 0 .. 2
  exclude optimizer.lr > 3e-4 and seed > 0
  limit = 12 runs
}

test "tp must divide the heads" for small {
  expect model.params == 8_030_261_248
  expect error FP0412 with { mesh.tp = 3 }
}
"""


@frozen
class Outcome:
    text: str
    line: int
    faults: list[Diagnostic]

    @property
    def is_near(self) -> bool:
        """Whether every message labels a place within one line of the change."""
        return all(any(abs(self.line_of(lb.span.start) - self.line) <= 1 for lb in f.labels) for f in self.faults)

    def line_of(self, offset: int) -> int:
        return self.text.count("\n", 0, offset)


def outcomes(text: str, seed: int) -> Iterator[Outcome]:
    """What is reported for seeded deletions, doublings, replacements and insertions of one token."""
    rng = random.Random(seed)
    tokens = [token for token in lex("t", text).tokens if token.kind != "NL"]
    for _ in range(MUTATIONS):
        token, other = rng.choice(tokens), rng.choice(tokens).text
        start, end = token.span.start, token.span.end
        changed = (
            text[:start] + rng.choice(["", f"{token.text} {token.text}", other, f"{other} {token.text}"]) + text[end:]
        )
        yield Outcome(changed, changed.count("\n", 0, start), read(changed).diagnostics)


@pytest.mark.parametrize("text", [DENSE, FAMILY], ids=["dense", "family"])
def test_one_changed_token_gives_about_one_message_close_to_it(text: str) -> None:
    clean(text)
    faulty = [outcome for outcome in outcomes(text, seed=17) if outcome.faults]
    counts = sorted(len(outcome.faults) for outcome in faulty)
    assert sum(counts) / len(counts) <= 1.4
    assert counts[len(counts) * 95 // 100] <= 4
    assert sum(outcome.is_near for outcome in faulty) / len(faulty) >= 0.97


@pytest.mark.parametrize("text", [DENSE, FAMILY], ids=["dense", "family"])
def test_any_changed_characters_give_diagnostics_and_never_an_exception(text: str) -> None:
    rng = random.Random(3)
    alphabet = "abz_0189 \n\t\"'#$\\{}[]().,:;=+-*/%<>?!“–\u00a0\u202e\0ü名"
    for _ in range(MUTATIONS):
        changed = list(text)
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(changed))
            changed[at : at + rng.randint(0, 3)] = rng.choices(alphabet, k=rng.randint(0, 3))
        parsed = read("".join(changed))
        for fault in parsed.diagnostics:
            assert fault.code.startswith("FP01")
            assert fault.span is not None
            assert 0 <= fault.span.start <= fault.span.end <= len("".join(changed)) + 1
