"""Is the next token drawn from the distribution that was asked for?"""

from __future__ import annotations

import pytest
import torch

from forgeplan.diagnostics.refusal import Refusal, UsageError
from forgeplan.runtime.sampling import Sampling, next_token, penalised, probabilities

LOGITS = torch.tensor([2.0, -1.0, 0.5])


def test_a_repetition_penalty_makes_seen_ids_less_likely_once_each() -> None:
    """Logits 2, −1, .5 with ids 0 and 1 seen, 1 three times, penalty 2: 1, −2, .5 (worked by hand)."""
    found = penalised(LOGITS, torch.tensor([1, 0, 1, 1]), 2.0)
    assert found.tolist() == [1.0, -2.0, 0.5]
    expected = [0.603749, 0.030059, 0.366192]
    assert probabilities(found, Sampling(temperature=1)).tolist() == pytest.approx(expected, abs=1e-6)
    assert LOGITS.tolist() == [2.0, -1.0, 0.5]


def test_temperature_divides_logits() -> None:
    """softmax(2/2, −1/2, .5/2), by hand: e^1, e^−.5, e^.25 over their sum 4.608838."""
    found = probabilities(LOGITS, Sampling(temperature=2)).tolist()
    assert found == pytest.approx([0.589797, 0.131601, 0.278601], abs=1e-5)


def test_top_k_keeps_the_k_most_likely_with_their_ratio() -> None:
    """e^2 and e^.5: 7.389056, 1.648721."""
    assert probabilities(LOGITS, Sampling(1, top_k=2)).tolist() == pytest.approx([0.817574, 0, 0.182426], abs=1e-6)
    assert probabilities(LOGITS, Sampling(1, top_k=9)).tolist() == pytest.approx(LOGITS.softmax(-1).tolist())


@pytest.mark.parametrize(("top_p", "kept"), [(0.05, 1), (0.49, 1), (0.5, 1), (0.51, 2), (0.79, 2), (0.81, 3), (1.0, 4)])
def test_top_p_keeps_the_fewest_tokens_with_that_mass(top_p: float, kept: int) -> None:
    shares = torch.tensor([0.1, 0.5, 0.3, 0.1], dtype=torch.float64)
    found = probabilities(shares.log(), Sampling(1, top_p=top_p))
    assert (found > 0).sum() == kept
    assert found.sum().item() == pytest.approx(1)
    assert found[1] == found.max()


def test_temperature_zero_takes_the_most_likely() -> None:
    random = torch.Generator().manual_seed(0)
    assert {next_token(LOGITS, torch.tensor([]), Sampling(temperature=0), random) for _ in range(20)} == {0}


def test_drawn_shares_are_the_asked_ones() -> None:
    random = torch.Generator().manual_seed(0)
    drawn = torch.tensor([next_token(LOGITS, torch.tensor([]), Sampling(1), random) for _ in range(4000)])
    found = (torch.bincount(drawn, minlength=3) / 4000).tolist()
    assert found == pytest.approx(LOGITS.softmax(-1).tolist(), abs=0.025)


@pytest.mark.parametrize("wrong", [{"temperature": -1}, {"top_k": -1}, {"top_p": 0}, {"top_p": 1.1}])
def test_values_out_of_range_are_named(wrong: dict[str, float]) -> None:
    with pytest.raises(UsageError, match="must be"):
        Sampling(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
@pytest.mark.parametrize("temperature", [0, 1])
def test_a_model_that_has_diverged_is_told_apart_from_one_that_can_write(temperature: float, broken: float) -> None:
    logits = torch.tensor([broken, 0.0, -float("inf")])
    with pytest.raises(Refusal, match="not finite"):
        next_token(logits, torch.tensor([]), Sampling(temperature), torch.Generator())
