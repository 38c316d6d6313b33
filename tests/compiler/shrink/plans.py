"""Which large plans have what is hard to keep in a small one?"""

from __future__ import annotations

from forgeplan.analysis import analyse
from forgeplan.spec.job import Job

TEXT = """forge 1

from "std:clusters" import h200_node
import "std:models" as models

plan large {{
  cluster   = h200_node {{ nodes = {nodes} }}
  model     = models.{model} {{ context = 4Ki tokens }}
  sources   = {{ web = tokens {{ path = "web/*.npy" }} }}
  optimizer = adamw {{ lr = 3e-6 * cluster.nodes * batch.sequences / (8 sequences) }}
  batch     = {{ accumulation = 16, micro = 1 sequences, length = 4Ki tokens }}
  budget    = {{ tokens = 1T tokens }}
  checkpoint = {{ every = budget.steps // 1_000 }}
  {rest}
}}
"""
"""The rate and the distance of checkpoints follow from what is shrunk, and must not."""

LARGE = {
    "five axes, interleaved": (64, "llama3_70b", """
  mesh  = { pp = 4, dp_replicate = 2, cp = 2, tp = 8 }
  apply = [pp { schedule = interleaved }, tp, cp, recompute { mode = every, every = 4 }]
    """),
    "five axes, a stage in the middle, a ring": (64, "llama3_70b", """
  mesh  = { pp = 4, dp_replicate = 2, cp = 4, tp = 8 }
  apply = [
    pp { weights = { embedding = 2, head = 3 } }, tp { sequence = false }, cp { attention = ring }, recompute,
    fsdp { reshard = never }
  ]
    """),
    "some of the shards, named blocks": (8, "llama3_70b", """
  model.qk_norm = true
  mesh  = { dp_replicate = 2, dp_shard = 8, tp = 4 }
  apply = [recompute { mode = selective, only = ["layers.0", "layers.7*"] }, fsdp { reshard = 4 }]
    """),
    "kv heads on several ranks": (8, "mixtral_8x7b", """
  model.heads = 64
  mesh  = { tp = 16, dp_shard = 4 }
  apply = [tp { kv = replicate }]
  optimizer.decay_embeddings = true
    """),
    "experts node by node": (64, "deepseek_v3_like", """
  model.moe.router.rate_schedule = cosine
  model.moe.capacity = 1.25
  mesh     = { dp_replicate = 2, tp = 4, ep = 64 }
  apply    = [ep { hierarchical = true }, recompute]
  schedule = wsd { warmup = 1%, decay = 20% }
    """),
    "experts in every second layer, packed": (64, "deepseek_v3_like", """
  model.mtp = 0
  model.moe.every = 2
  model.moe.router.rate_schedule = warmup
  mesh      = { dp_replicate = 2, cp = 2, tp = 4, ep = 32 }
  schedule  = linear { warmup = 10% }
  tokenizer = byte {}
  batch.pack = true
    """),
    "one kv head, tied, window": (1, "qwen3_0_6b", """
  model.kv_heads = 1
  model.window   = 1Ki tokens
  model.dropout  = 0.1
  model.rope.scaling = yarn { factor = 4, original = 1Ki tokens }
  loss.z     = 1e-4
  guard.clip = none
    """),
    "cuts": (4, "llama3_8b", """
  mesh     = { pp = 4, tp = 2 }
  apply    = [pp { schedule = zero_bubble, cuts = [1, 4, 10, 16, 20, 24, 31] }]
  schedule = none
    """),
    "odd sizes": (1, "llama3_8b", """
  model.ffn   = 14_337
  model.vocab = 128_257
  model.mtp   = 3
  model.bias  = true
  model.norm  = layer
  model.softcap = 30
    """),
    "padded, offloaded, compiled": (1, "llama3_8b", """
  model.pad_vocab = 128_320
  model.attention = flash
  mesh     = { dp_replicate = 2 }
  apply    = [compile { loss = false }, fsdp { offload = true }]
  schedule = rex { warmup = 16Mi tokens }
    """),
    "float8 by rows": (1, "llama3_8b", """
  mesh  = { tp = 2 }
  apply = [fp8 { recipe = rowwise, exclude = ["head", "layers.0", "layers.31"] }, compile]
    """),
    "float8 by tensors": (1, "llama3_8b", """
  apply = [fp8 { all_gather = true }, recompute { mode = selective }, compile]
    """),
}  # fmt: skip


def large(name: str) -> Job:
    nodes, model, rest = LARGE[name]
    analysis = analyse("large.forge", text=TEXT.format(nodes=nodes, model=model, rest=rest.strip()))
    assert not analysis.errors, [(d.code, d.message) for d in analysis.errors]
    return analysis.jobs[0]
