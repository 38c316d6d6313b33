"""Has the model that is built as many numbers as were published, or counted by hand?"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from forgeplan.runtime.model.decoder import Transformer
from tests.runtime.tiny import decoder, moe

TINY = {"layers": 4, "dim": 64, "heads": 4, "kv_heads": 2, "head_dim": 16, "ffn": 128, "vocab": 256}
MIXTRAL = {"layers": 32, "dim": 4096, "heads": 32, "kv_heads": 8, "head_dim": 128, "ffn": 14_336, "vocab": 32_000}
QWEN3_30B = {"layers": 48, "dim": 2048, "heads": 32, "kv_heads": 4, "head_dim": 128, "ffn": 6144, "vocab": 151_936}
QWEN3_235B = {"layers": 94, "dim": 4096, "heads": 64, "kv_heads": 4, "head_dim": 128, "ffn": 12_288, "vocab": 151_936}

COUNTS: list[tuple[dict[str, Any], int]] = [
    (TINY | {"layers": 2}, 106_816),
    (TINY | {"layers": 2, "mlp": "gelu"}, 90_432),
    (TINY | {"layers": 2, "qk_norm": True}, 106_880),
    (TINY | {"moe": moe(experts=8, top_k=2, ffn=64, every=2, shared=2)}, 378_432),
    (TINY | {"moe": moe(experts=8, top_k=2, ffn=64, first_dense=1, shared=1)}, 440_384),
    (MIXTRAL | {"moe": moe(experts=8, top_k=2, ffn=14_336)}, 46_702_792_704),
    (QWEN3_30B | {"qk_norm": True, "moe": moe(experts=128, top_k=8, ffn=768)}, 30_532_122_624),
    (QWEN3_235B | {"qk_norm": True, "moe": moe(experts=128, top_k=8, ffn=1536)}, 235_093_634_560),
]


@pytest.mark.parametrize(("fields", "expected"), COUNTS, ids=[f"{expected:,}" for _, expected in COUNTS])
def test_the_built_model_has_the_counted_numbers(fields: dict[str, Any], expected: int) -> None:
    """Case C029; the three large ones are Mixtral-8x7B, Qwen3-30B-A3B and Qwen3-235B-A22B."""
    with torch.device("meta"):
        model = Transformer(decoder(**fields))
    assert sum(p.numel() for p in model.parameters()) == expected
