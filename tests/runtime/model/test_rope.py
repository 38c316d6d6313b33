"""Are positions rotated by the published angles?"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
import torch

from forgeplan.runtime.model.rope import rotate, rotation, scaled_frequencies
from forgeplan.spec.model.decoder import Rope
from forgeplan.spec.rope_scaling.scalings import Linear, Llama3, Ntk, Yarn


def frequencies(theta: int, head_dim: int, scaling: Any = None, length: int = 16) -> torch.Tensor:
    return scaled_frequencies(Rope(Fraction(theta), scaling), head_dim, length)[0]


def test_llama3_blends_between_its_wavelengths() -> None:
    """Ratios for head 128, theta 5e5, factor 8, low 1, high 4, original 8192 (Llama 3.1)."""
    scaling = Llama3(factor=Fraction(8), low=Fraction(1), high=Fraction(4), original=8192)
    ratio = frequencies(500_000, 128, scaling) / frequencies(500_000, 128)
    expected = [1, 0.828168, 0.643743, 0.371122, 0.190211, 0.125]
    assert ratio[[28, 29, 30, 32, 34, 35]].tolist() == pytest.approx(expected, abs=1e-6)


def test_yarn_interpolates_by_wavelength() -> None:
    """Ratios for head 128, theta 1e4, factor 4, original 4096 (YaRN); attention factor 0.1·ln 4 + 1."""
    scaling = Yarn(factor=Fraction(4), original=4096, fast=Fraction(32), slow=Fraction(1))
    scaled, factor = scaled_frequencies(Rope(Fraction(10_000), scaling), 128, 16)
    ratio = scaled / frequencies(10_000, 128)
    assert ratio[[20, 24, 32, 40, 46]].tolist() == pytest.approx([1, 0.884615, 0.653846, 0.423077, 0.25], abs=1e-6)
    assert factor == pytest.approx(1.138629, abs=1e-6)


def test_linear_divides_every_frequency() -> None:
    scaled = frequencies(10_000, 16, Linear(factor=Fraction(4)))
    assert scaled[:3].tolist() == pytest.approx([0.25, 0.0790569, 0.025], abs=1e-7)


def test_dynamic_ntk_begins_beyond_the_original_context() -> None:
    """Base θ·(f·L/L₀ − (f − 1))^(d/(d−2)): for f 2, L = 2·L₀, d 8 the stretch is 3^(8/6)."""
    scaling = Ntk(factor=Fraction(2), original=16)
    assert torch.equal(frequencies(10_000, 8, scaling, length=16), frequencies(10_000, 8))
    stretched = frequencies(10_000, 8, scaling, length=32)
    assert stretched[1].item() == pytest.approx((10_000 * 3 ** (8 / 6)) ** (-2 / 8), rel=1e-12)


def test_tables_stay_in_fp32_when_activations_are_bf16() -> None:
    """Cosines of pair 0 (frequency 1); positions in bf16 would make 256 and 257 equal."""
    positions = torch.tensor([[256, 257, 15962]])
    table = rotation(Rope(Fraction(10_000), None), 4, positions, 16_384, torch.bfloat16)
    assert table.cos_BSP.dtype == torch.float32
    assert table.cos_BSP[0, :, 0].tolist() == pytest.approx([-0.039791, 0.819306, -0.908016], abs=1e-6)


def test_tables_of_fp64_activations_are_fp64() -> None:
    table = rotation(Rope(Fraction(10_000), None), 4, torch.tensor([[1]]), 2, torch.float64)
    assert table.sin_BSP.dtype == torch.float64


def test_a_rotation_turns_pairs_in_the_half_split_layout() -> None:
    """Dimension i is paired with i + 2; complex multiplication as an independent reference."""
    x = torch.randn(1, 3, 1, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    positions = torch.tensor([[0, 5, 9]])
    got = rotate(x, rotation(Rope(Fraction(100), None), 4, positions, 10, torch.float64))
    angles = positions[0, :, None] * torch.tensor([1.0, 0.1], dtype=torch.float64)
    turned = torch.complex(x[0, :, 0, :2], x[0, :, 0, 2:]) * torch.polar(torch.ones_like(angles), angles)
    assert torch.allclose(got[0, :, 0], torch.cat([turned.real, turned.imag], -1), atol=1e-14)
