"""Which token comes next, given the logits of all of them?"""

from __future__ import annotations

import torch
from attrs import frozen
from torch import Tensor

from forgeplan.diagnostics.refusal import Refusal, UsageError
from forgeplan.diagnostics.refusals import GENERATION

# V vocabulary


@frozen
class Sampling:
    """`temperature` 0 takes the most likely token; `top_k` 0, `top_p` 1 and `repetition_penalty` 1 change nothing."""

    temperature: float = 0.8
    top_k: int = 0
    top_p: float = 1.0
    repetition_penalty: float = 1.0

    def __attrs_post_init__(self) -> None:
        """Raises UsageError for a value out of range."""
        limits = {
            "temperature": (self.temperature >= 0, "0 or more"),
            "top-k": (self.top_k >= 0, "0 or more"),
            "top-p": (0 < self.top_p <= 1, "above 0 and at most 1"),
            "repetition penalty": (self.repetition_penalty > 0, "above 0"),
        }
        for name, (holds, range) in limits.items():
            if not holds:
                raise UsageError(f"{name} must be {range}")


def next_token(logits_V: Tensor, seen: Tensor, sampling: Sampling, random: torch.Generator) -> int:
    """One token of one sequence. `seen` are the ids of prompt and answer so far, in any order and number.

    Raises Refusal FP1020 for the logits of a model that has diverged; −inf alone is that of a masked id.
    """
    if not (logits_V < float("inf")).all():
        message = "the model's answers are not finite numbers, so that there is nothing to choose from: it has diverged"
        raise Refusal(GENERATION, message, "take an earlier checkpoint, or train with a lower `optimizer.lr`")
    logits_V = penalised(logits_V.float(), seen, sampling.repetition_penalty)
    if sampling.temperature == 0:
        return int(logits_V.argmax())
    return int(torch.multinomial(probabilities(logits_V, sampling), 1, generator=random))


def penalised(logits_V: Tensor, seen: Tensor, penalty: float) -> Tensor:
    """Logits with those of seen ids made less likely, once each: a positive one divided, a negative one multiplied.

    (Keskar et al., 2019, as corrected for negative logits in later implementations.)
    """
    if penalty == 1 or not seen.numel():
        return logits_V
    ids = seen.unique()
    found = logits_V[ids]
    return logits_V.index_put((ids,), torch.where(found > 0, found / penalty, found * penalty))


def probabilities(logits_V: Tensor, sampling: Sampling) -> Tensor:
    """Softmax at the temperature of the `top_k` most likely tokens, cut to the fewest that together have `top_p`.

    Equal logits at the edge of top-k are all kept. At least one token is left. (Holtzman et al., 2020, for the
    nucleus.)
    """
    logits_V = logits_V / sampling.temperature
    if 0 < sampling.top_k < logits_V.numel():
        edge = logits_V.topk(sampling.top_k).values[-1]
        logits_V = logits_V.masked_fill(logits_V < edge, float("-inf"))
    shares_V = logits_V.softmax(-1)
    if sampling.top_p < 1:
        ordered_V, order_V = shares_V.sort(descending=True)
        # A token stays if those before it do not have the mass yet.
        dropped_V = ordered_V.cumsum(-1) - ordered_V >= sampling.top_p
        shares_V = shares_V.index_fill(-1, order_V[dropped_V], 0)
    return shares_V / shares_V.sum()
