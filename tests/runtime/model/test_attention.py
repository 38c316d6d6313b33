"""Does a token see exactly what it may see, whatever the kernel?"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from forgeplan.diagnostics.refusal import InternalError
from forgeplan.runtime.init import initialise
from forgeplan.runtime.model.attention import attend
from forgeplan.runtime.model.cache import Cache
from forgeplan.runtime.model.decoder import Transformer
from forgeplan.runtime.model.mask import build_mask, kernel_for
from forgeplan.runtime.parallel.axes import ContextParallel
from forgeplan.runtime.parallel.collectives import Group
from forgeplan.spec.model.decoder import Decoder, Rope
from forgeplan.spec.rope_scaling.scalings import Ntk
from tests.runtime.tiny import decoder

CPU = torch.device("cpu")


def model_of(spec: Decoder) -> Transformer:
    model = Transformer(spec).double()
    initialise(model, seed=3)
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(8 if p.dim() > 1 else 1)
    return model


def naive(spec: Decoder, q: Tensor, k: Tensor, v: Tensor, documents: Tensor | None) -> Tensor:
    """One query and one head at a time."""
    out = torch.zeros_like(q)
    batch, length, heads, width = q.shape
    for b in range(batch):
        for s in range(length):
            seen = [
                t
                for t in range(s + 1)
                if s - t < (spec.window or length) and (documents is None or documents[b, s] == documents[b, t] >= 0)
            ]
            for h in range(heads if seen else 0):
                shared = h // (heads // spec.kv_heads)
                scores = k[b, seen, shared] @ q[b, s, h] / width**0.5
                if spec.softcap is not None:
                    scores = float(spec.softcap) * torch.tanh(scores / float(spec.softcap))
                out[b, s, h] = scores.softmax(0) @ v[b, seen, shared]
    return out


FEATURES: list[dict[str, Any]] = [
    {},
    {"window": 3},
    {"softcap": Fraction(2)},
    {"softcap": Fraction(2), "window": 4},
    {"kv_heads": 1},
    {"kv_heads": 4},
]
DOCUMENTS = torch.tensor([[0, 0, 0, 1, 1, 1, 1, 2], [0, 0, 0, 0, 0, 0, -1, -1]])


@pytest.mark.parametrize("backend", ["auto", "math", "efficient", "flex"])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("fields", FEATURES, ids=str)
def test_attention_is_its_definition(fields: dict[str, Any], packed: bool, backend: str) -> None:
    spec = decoder(attention=backend, **fields)
    random = torch.Generator().manual_seed(0)
    q, k, v = (
        torch.randn(2, 8, heads, spec.head_dim, dtype=torch.float64, generator=random)
        for heads in (spec.heads, spec.kv_heads, spec.kv_heads)
    )
    documents = DOCUMENTS if packed else None
    with torch.no_grad():
        got = attend(spec, q, k, v, build_mask(spec, 8, 0, documents, 2, CPU))
    assert torch.allclose(got, naive(spec, q, k, v, documents), atol=1e-6 if backend == "flex" else 1e-12)


@pytest.mark.parametrize(
    ("fields", "special", "training", "generating"),
    [
        ({}, False, "sdpa", "sdpa"),
        ({}, True, "flex", "sdpa"),
        ({"softcap": Fraction(2)}, False, "flex", "scores"),
        ({"attention": "flex"}, False, "flex", "sdpa"),
        ({"attention": "flash"}, False, "sdpa", "sdpa"),
        ({"attention": "flash"}, True, "varlen", "sdpa"),
        ({"attention": "flash", "softcap": Fraction(2)}, True, "scores", "scores"),
    ],
    ids=str,
)
def test_a_gpu_trains_with_the_kernel_that_knows_all_features_and_compiles_none_for_a_prompt(
    fields: dict[str, Any], special: bool, training: str, generating: str
) -> None:
    spec = decoder(**fields)
    assert [kernel_for(spec, "cuda", special, g) for g in (False, True)] == [training, generating]


@pytest.mark.parametrize("attention", ["auto", "flash", "efficient", "math", "flex"])
def test_queries_of_a_cp_rank_take_no_kernel_whose_documents_begin_where_their_keys_do(attention: str) -> None:
    """varlen knows documents by the offsets at which they begin, alike for queries and keys: a rank has part of one."""
    assert kernel_for(decoder(attention=attention), "cuda", True, False, gathers=True) in ("flex", "sdpa")


@pytest.mark.parametrize("fields", [{"window": 3}, {"softcap": Fraction(2)}, {}], ids=str)
def test_a_ring_takes_no_mask_but_the_causal_one(fields: dict[str, Any]) -> None:
    """A plan with more is refused (FP0420); with the kernel itself, the rest of the mask would be lost silently."""
    cp = ContextParallel(Group(size=2), "ring")
    documents = None if fields else DOCUMENTS
    assert build_mask(decoder(), 8, 0, None, 2, CPU, cp=cp).kernel == "ring"
    with pytest.raises(InternalError, match="ring attention"):
        build_mask(decoder(**fields), 8, 0, documents, 2, CPU, cp=cp)


MASKED: list[dict[str, Any]] = [
    {},
    {"softcap": Fraction(5)},
    {"window": 4},
    {"attention": "math"},
    {"attention": "efficient"},
]


@torch.no_grad()
@pytest.mark.parametrize("fields", [*MASKED, {"attention": "flex"}], ids=str)
def test_packed_documents_do_not_see_one_another(fields: dict[str, Any]) -> None:
    """C041: documents of 5 and 7 tokens; their losses are those of each alone."""
    model = model_of(decoder(**fields))
    random = torch.Generator().manual_seed(0)
    ids = torch.randint(29, (1, 12), generator=random)
    documents = torch.tensor([[0] * 5 + [1] * 7])
    positions = torch.tensor([[*range(5), *range(7)]])
    packed = model(ids, positions, documents).logits_BSV
    changed = ids.clone()
    changed[:, :5] = (ids[:, :5] + 1) % 29
    assert torch.equal(model(changed, positions, documents).logits_BSV[:, 5:], packed[:, 5:])
    labels = ids.roll(-1, 1)
    alone = torch.stack(
        [
            F.cross_entropy(model(ids[:, part]).logits_BSV[0], labels[0, part], reduction="sum")
            for part in (slice(0, 5), slice(5, 12))
        ]
    ).sum()
    together = F.cross_entropy(packed[0], labels[0], reduction="sum")
    assert together.item() == pytest.approx(alone.item(), rel=1e-6 if fields == {"attention": "flex"} else 1e-12)


@pytest.mark.parametrize("fields", MASKED, ids=str)
def test_a_row_of_padding_stays_finite_and_disturbs_nobody(fields: dict[str, Any]) -> None:
    """C044: a row of padding only, and one that ends in padding; gradients come from all their positions."""
    model = model_of(decoder(**fields))
    ids = torch.randint(29, (2, 8), generator=torch.Generator().manual_seed(1))
    documents = torch.tensor([[-1] * 8, [0] * 5 + [-1] * 3])
    logits = model(ids, None, documents).logits_BSV
    assert logits.isfinite().all()
    logits.square().sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)
    assert torch.allclose(logits[1, :5], model(ids[1:, :5]).logits_BSV[0], atol=1e-12)


NTK = Rope(Fraction(10_000), Ntk(factor=Fraction(2), original=8))


@pytest.mark.parametrize("fields", [{}, {"window": 6}, {"softcap": Fraction(5)}, {"rope": NTK}], ids=str)
@pytest.mark.parametrize("pieces", [[20], [7, 13], [1] * 20])
def test_a_prompt_may_come_in_pieces(pieces: list[int], fields: dict[str, Any]) -> None:
    model = model_of(decoder(**fields))
    ids = torch.randint(29, (2, 20), generator=torch.Generator().manual_seed(2))
    cache: Cache | None = Cache(total=20)
    with torch.no_grad():
        whole = model(ids).logits_BSV
        for piece in ids.split(pieces, 1):
            logits, cache = model(piece, cache=cache)[:2]
    assert cache is not None
    assert cache.length == 20
    assert torch.allclose(logits[:, -1], whole[:, -1], atol=1e-12)


def test_left_padding_changes_nothing() -> None:
    """Three pads in front, positions from the first real token; then one more token into the cache."""
    model = model_of(decoder())
    ids = torch.randint(29, (1, 6), generator=torch.Generator().manual_seed(4))
    padded = torch.cat([torch.zeros(1, 3, dtype=torch.int64), ids[:, :5]], 1)
    documents = torch.tensor([[-1] * 3 + [0] * 5])
    with torch.no_grad():
        wanted = model(ids).logits_BSV[:, -1]
        cache = model(padded, torch.tensor([[0, 0, 0, *range(5)]]), documents, cache=Cache()).cache
        logits = model(ids[:, 5:], torch.tensor([[5]]), cache=cache).logits_BSV
    assert torch.allclose(logits[:, -1], wanted, atol=1e-12)


def test_padded_rows_of_the_vocabulary_leave_no_trace() -> None:
    """A zero head over 10 ids gives ln 10 = 2.302585; a leak of six padding rows would give ln 16 = 2.772589."""
    model = model_of(decoder(vocab=10, pad_vocab=16))
    torch.nn.init.zeros_(model.head.weight)
    logits = model(torch.arange(10)[None]).logits_BSV
    assert logits.shape[-1] == 10
    assert logits._base is None, "FSDP hangs hooks on it, which a view loses"
    assert F.cross_entropy(logits[0], torch.arange(10)).item() == pytest.approx(2.302585, abs=1e-6)
