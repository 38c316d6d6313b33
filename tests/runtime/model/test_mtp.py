"""Do modules of multi-token prediction see the token k later, and only labels of the same document?"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from forgeplan.runtime.data.microbatch import NOT_COUNTED
from forgeplan.runtime.init import initialise
from forgeplan.runtime.model.mtp import FurtherToken, later_labels, later_tokens
from tests.runtime.tiny import decoder

_ = NOT_COUNTED


def test_labels_further_ahead_end_with_the_document() -> None:
    """Tokens 10 11 12 13 | 20 21 22: two further, 10 predicts 13, and nothing else in its document is left."""
    labels = torch.tensor([[11, 12, 13, _, 21, 22, 23]])
    documents = torch.tensor([[0, 0, 0, 0, 1, 1, 1]])
    assert later_labels(labels, documents, 1).tolist() == [[12, 13, _, _, 22, 23, _]]
    assert later_labels(labels, documents, 2).tolist() == [[13, _, _, _, 23, _, _]]
    assert later_labels(labels, documents, 7).tolist() == [[_] * 7]


def test_a_label_of_the_next_document_does_not_count_even_at_its_border() -> None:
    """Without the label that ends a document, as in a document cut by the window."""
    labels = torch.tensor([[11, 12, 13, 21, 22, 23]])
    documents = torch.tensor([[0, 0, 0, 1, 1, 1]])
    assert later_labels(labels, documents, 1).tolist() == [[12, 13, _, 22, 23, _]]


def test_labels_that_were_not_counted_stay_so() -> None:
    assert later_labels(torch.tensor([[1, _, 3, _, 5]]), None, 1).tolist() == [[_, 3, _, 5, _]]


def test_tokens_further_ahead() -> None:
    assert later_tokens(torch.tensor([[5, 6, 7], [8, 9, 4]]), 2).tolist() == [[7, 0, 0], [4, 0, 0]]


class Twice(nn.Module):
    """A block that keeps no state, and shows the context it was given as its routing."""

    def forward(self, x: Tensor, context: str) -> tuple[Tensor, None, str]:
        return 2 * x, None, context


def test_hidden_states_and_embeddings_are_normalised_apart_and_joined_hidden_first() -> None:
    """Equation 21: M·[RMSNorm(h) ; RMSNorm(e)], whatever the lengths of h and e."""
    spec = decoder(dim=4)
    made = FurtherToken(spec, Twice(), std=0.5).double()
    initialise(made, seed=1)
    random = torch.Generator().manual_seed(2)
    h, e = (torch.randn(1, 3, 4, generator=random, dtype=torch.float64) for _ in range(2))
    found = made(h, e, "context")

    def rms(x: Tensor) -> Tensor:
        return x / (x.square().mean(-1, keepdim=True) + float(spec.norm_eps)).sqrt()

    wanted = 2 * torch.einsum("de,bse->bsd", made.projection.weight, torch.cat([rms(h), rms(e)], -1))
    assert torch.allclose(found.hidden_BSD, wanted, rtol=1e-12)
    assert torch.allclose(found.normed_BSD, rms(wanted), rtol=1e-12)
    assert found.routing == "context"
    assert torch.allclose(made(1e3 * h, e, "context").hidden_BSD, wanted, rtol=1e-4)
