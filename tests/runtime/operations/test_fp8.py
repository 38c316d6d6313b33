"""Do the planned layers, and no others, multiply in float8, with the scales that were planned for them?"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional as F

from forgeplan.diagnostics.refusal import Refusal
from forgeplan.plan.mesh import Mesh
from forgeplan.plan.operations import Fp8
from forgeplan.runtime.executor import build, named_views
from forgeplan.runtime.operations.fp8 import Float8Product
from forgeplan.runtime.selftest.pool import Pools
from forgeplan.runtime.selftest.rows.float8 import GATHERED, ROWWISE, SHAPE
from tests.runtime.operations import fp8_on_ranks
from tests.runtime.tiny import decoder, execution_plan

CPU = torch.device("cpu")


def float8(layers: tuple[str, ...], **options: Any) -> dict[str, dict[str, Any]]:
    return {"fp8": {"emulate": True, "layers": layers, **options}}


def test_the_planned_layers_are_converted_and_nothing_is_renamed() -> None:
    plain = build(execution_plan(model=decoder(**SHAPE)), CPU)
    bundle = build(execution_plan(model=decoder(**SHAPE), transforms=ROWWISE), CPU)
    found = {n for n, m in bundle.model.named_modules() if isinstance(getattr(m, "product", None), Float8Product)}
    assert found == set(ROWWISE["fp8"]["layers"])
    views = named_views(bundle)
    assert views.keys() == named_views(plain).keys()
    assert all(torch.equal(tensor, views[name]) for name, tensor in named_views(plain).items())


def test_a_layer_that_cannot_be_converted_is_not_passed_over() -> None:
    with pytest.raises(Refusal, match=r"FP1009(.|\n)*layers\.0\.attention\.wx: planned in float8"):
        build(execution_plan(model=decoder(**SHAPE), transforms=float8(("layers.0.attention.wx",))), CPU)


@pytest.mark.parametrize(("recipe", "gradients"), [("tensorwise", "float8_e5m2"), ("rowwise", "float8_e4m3fn")])
def test_a_product_is_that_of_rounded_factors(recipe: str, gradients: str) -> None:
    """Against casts written out: a scale for a tensor, or powers of two for rows (of x by its rows, of W by its)."""
    random = torch.Generator().manual_seed(3)
    x, weight = (torch.randn(*shape, generator=random, requires_grad=True) for shape in ((32, 16), (48, 16)))
    bias, upstream = torch.randn(48, generator=random), torch.randn(32, 48, generator=random)
    product = Float8Product(Fp8("plan", recipe=recipe, emulate=True))
    out = product(x, weight, bias)
    out.backward(upstream)
    values, backward = torch.float8_e4m3fn, getattr(torch, gradients)
    by_row = recipe == "rowwise"

    def rounded(tensor: torch.Tensor, dtype: torch.dtype, dim: int) -> torch.Tensor:
        peak = tensor.detach().abs().amax(dim, keepdim=True) if by_row else tensor.detach().abs().max()
        scale = (torch.finfo(dtype).max / peak.double()).float()
        scale = scale.log2().floor().exp2() if by_row else scale
        return (tensor.detach() * scale).to(dtype).float() / scale

    assert x.grad is not None
    assert weight.grad is not None
    torch.testing.assert_close(out, F.linear(rounded(x, values, 1), rounded(weight, values, 1), bias))
    torch.testing.assert_close(x.grad, rounded(upstream, backward, 1) @ rounded(weight, values, 0))
    torch.testing.assert_close(weight.grad, rounded(upstream, backward, 0).T @ rounded(x, values, 0))
    assert not torch.allclose(out, F.linear(x, weight, bias), rtol=1e-3)


def test_in_fp64_a_row_that_is_cut_rounds_as_the_whole_row() -> None:
    """Also values that are tiny beside the rest of their row; all others are what float8 leaves of them."""
    random = torch.Generator().manual_seed(4)
    x = torch.randn(32, 32, generator=random, dtype=torch.float64)
    x[:, ::4] *= 1e-6
    weight = torch.randn(48, 32, generator=random, dtype=torch.float64)
    product = Float8Product(Fp8("plan", recipe="rowwise", emulate=True))
    whole = product(x, weight)
    parts = [product(x[:, part], weight[:, part]) for part in (slice(0, 16), slice(16, 32))]
    torch.testing.assert_close(whole, parts[0] + parts[1], rtol=1e-12, atol=1e-12)
    peak = x.abs().amax(1, keepdim=True)
    scale = (448 / peak).log2().floor().exp2()
    as_float8 = (x * scale).to(torch.float8_e4m3fn).double() / scale
    rounded = product(x, torch.eye(32, dtype=torch.float64))
    is_normal = (x * scale).abs() >= 2**-6
    assert 0 < is_normal.sum() < x.numel()
    assert torch.equal(rounded[is_normal], as_float8[is_normal])
    assert not torch.equal(rounded, as_float8)


def test_weights_are_gathered_in_float8_with_the_scale_of_the_whole() -> None:
    """On 4 ranks of which some have no row of some weight; again after an update, and never in a checkpoint."""
    plan = execution_plan(model=decoder(**SHAPE), mesh=Mesh(dp_shard=4), transforms=GATHERED)
    pools = Pools()
    try:
        reports = pools[4].run(f"{fp8_on_ranks.__name__}:{fp8_on_ranks.gathered.__name__}", plan)
    finally:
        pools.close()
    for found in reports:
        assert found["sent"] == "torch.float8_e4m3fn"
        assert found["views are plain"]
        assert found["scales"] == found["expected"]
        assert found["scales after an update"] == found["expected after an update"] != found["expected"]
