"""Which models and meshes do rows of several kinds have?"""

from __future__ import annotations

from fractions import Fraction

from forgeplan.plan.mesh import Mesh

FSDP2, FSDP4 = Mesh(dp_shard=2), Mesh(dp_shard=4)
HSDP, REPLICAS = Mesh(dp_replicate=2, dp_shard=2), Mesh(dp_replicate=2)
NORMED = {"qk_norm": True}
MULTI_QUERY = {"kv_heads": 1, "qk_norm": True, "tie": True}
RAGGED = {"dim": 10, "heads": 3, "kv_heads": 1, "head_dim": 6, "ffn": 7, "vocab": 5, "bias": True, "norm": "layer"}
DROPPING = {"dropout": Fraction("0.2")}
ODD_ONE_OUT = {"mlp": "gelu", "window": 5, "softcap": Fraction(3), "pad_vocab": 32}
HALF = Fraction("0.5")
TP2, TP4 = Mesh(tp=2), Mesh(tp=4)
WHOLE_SEQUENCE = {"tp": {"sequence": False}}
REPLICATED = {"tp": {"kv": "replicate"}}
FULL = {"qk_norm": True, "bias": True, "norm": "layer"}
