"""Is dropout a function of seed, sample, layer and name, and nothing else?"""

from __future__ import annotations

import pytest
import torch

from forgeplan.runtime.randomness import Randomness

SHAPE = torch.Size([4, 32, 16])
CPU = torch.device("cpu")


def splitmix(x: int) -> int:
    """SplitMix64's finaliser in Python's unbounded integers."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) % 2**64
    return x ^ (x >> 31)


def test_bits_are_splitmix_of_sample_and_place() -> None:
    from hashlib import sha256

    key = int.from_bytes(sha256(b"5|2|mlp").digest()[:8])
    bits = Randomness(seed=5, sample=100).noise(4, 2, "mlp", CPU).bits(SHAPE)
    for row, s, d in ((0, 0, 0), (1, 3, 7), (3, 31, 15)):
        place = s * 16 + d
        row_key = splitmix(splitmix(100 + row) ^ key)
        assert bits[row, s, d].item() == splitmix((row_key + place * 0x9E3779B97F4A7C15) % 2**64) >> 40


def test_a_row_gets_the_same_numbers_in_any_microbatch() -> None:
    together = Randomness(1, 8).noise(4, 0, "mlp", CPU).bits(SHAPE)
    alone = Randomness(1, 10).noise(1, 0, "mlp", CPU).bits(torch.Size([1, 32, 16]))
    assert torch.equal(together[2:3], alone)


def test_seed_sample_layer_and_name_all_matter() -> None:
    base = Randomness(1, 0).noise(4, 0, "mlp", CPU).bits(SHAPE)
    others = [
        Randomness(2, 0).noise(4, 0, "mlp", CPU).bits(SHAPE),
        Randomness(1, 4).noise(4, 0, "mlp", CPU).bits(SHAPE),
        Randomness(1, 0).noise(4, 1, "mlp", CPU).bits(SHAPE),
        Randomness(1, 0).noise(4, 0, "attention", CPU).bits(SHAPE),
    ]
    for other in others:
        assert (base == other).float().mean() < 0.01
        assert abs(torch.corrcoef(torch.stack([base.flatten(), other.flatten()]).double())[0, 1]) < 0.1


def test_bits_are_uniform() -> None:
    bits = Randomness(3, 0).noise(64, 0, "mlp", CPU).bits(torch.Size([64, 1024]))
    counts = torch.bincount((bits >> 16).flatten(), minlength=256).double()
    chi_squared = ((counts - 256) ** 2 / 256).sum().item()
    assert 150 < chi_squared < 380, "256 cells: mean 255, standard deviation 23"


@pytest.mark.parametrize("probability", [0.1, 0.5])
def test_dropout_keeps_the_mean_and_drops_the_share(probability: float) -> None:
    x = torch.ones(16, 64, 64, dtype=torch.float64)
    y = Randomness(0, 0).noise(16, 0, "mlp", CPU).dropout(x, probability)
    assert (y == 0).double().mean().item() == pytest.approx(probability, abs=0.005)
    assert y[y != 0].unique().tolist() == [1 / (1 - probability)]
