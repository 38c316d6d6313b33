"""What is a mixture of experts, put together?"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from forgeplan.diagnostics.refusal import InternalError
from forgeplan.runtime.model.mlp import MLP
from forgeplan.runtime.model.module import Module
from forgeplan.runtime.model.moe.balance import entropy, losses
from forgeplan.runtime.model.moe.capacity import within_capacity
from forgeplan.runtime.model.moe.counting import counted
from forgeplan.runtime.model.moe.dispatch import planned
from forgeplan.runtime.model.moe.experts import Experts
from forgeplan.runtime.model.moe.router import Choice, Router
from forgeplan.runtime.model.moe.rows import picked, put_back, with_scaled_gradient
from forgeplan.runtime.parallel.collectives import all_reduced
from forgeplan.spec.model.decoder import GATED, Decoder

# B sequences, S positions of this rank, T = B·S tokens, D model width, E experts, K experts of one token,
# N assignments: one for each token and expert of it, without those that are dropped


class Routing(NamedTuple):
    """What routers did with this rank's tokens. Summed over the ranks that share a microbatch, the microbatch's."""

    counts_E: Tensor
    """Tokens that chose each expert, before any is dropped."""
    balance: Tensor
    """Loss of uneven load, times its weight; so are the next two."""
    sequence_balance: Tensor
    z: Tensor
    dropped: Tensor
    """Assignments beyond the capacity of an expert."""
    entropy: Tensor
    """Of the shares of each token's scores, in nats, summed over tokens."""


class MoE(Module):
    """Σ gate·expert(x) over the experts that the router chose for x, and the shared experts' output."""

    has_data_dependent_shapes = True

    def __init__(self, spec: Decoder, std: float, residual_std: float) -> None:
        super().__init__()
        if spec.moe is None:
            raise InternalError("a layer of experts in a model that has none")
        moe = self.spec = spec.moe
        self.router = Router(moe, spec.dim, std)
        self.experts = Experts(moe.experts, spec.dim, moe.ffn, spec.mlp, spec.mlp in GATED, (std, residual_std))
        width = moe.shared * moe.ffn
        self.shared = MLP(spec, std, residual_std, width=width, bias=False) if moe.shared else None

    def forward(self, x_BSD: Tensor, places_S: Tensor | None = None) -> tuple[Tensor, Routing]:
        """`places_S` are the places in the sequence of this rank's positions; 0, 1, … where it has them all."""
        batch, length, _ = x_BSD.shape
        x_TD = x_BSD.flatten(0, 1)
        choice: Choice = self.router(x_TD)
        is_kept_TK = self._kept(choice.experts_TK.view(batch, length, self.spec.top_k), places_S)
        y_BSD = self._routed(x_TD, choice, is_kept_TK).view_as(x_BSD)
        counts_E = counted(choice.experts_TK.flatten(), self.spec.experts)
        dropped = counts_E.new_zeros(()) if is_kept_TK is None else (~is_kept_TK).sum()
        shares = losses(self.spec, choice, batch, self.axes.microbatch)
        routing = Routing(counts_E, *shares, dropped=dropped, entropy=entropy(choice))
        return y_BSD if self.shared is None else y_BSD + self.shared(x_BSD), routing

    def _kept(self, experts_BSK: Tensor, places_S: Tensor | None) -> Tensor | None:
        if self.spec.capacity is None:
            return None
        group = self.axes.microbatch
        if places_S is None:
            if group.size > 1:
                raise InternalError("ranks share a microbatch, and a layer with capacity does not know its places")
            places_S = torch.arange(experts_BSK.shape[1], device=experts_BSK.device)
        kept_BSK = within_capacity(experts_BSK, self.spec.experts, self.spec.capacity, places_S, group)
        return kept_BSK.flatten(0, 1)

    def _routed(self, x_TD: Tensor, choice: Choice, is_kept_TK: Tensor | None) -> Tensor:
        """Rows sorted by expert, to the experts and back, then each token's weighted sum, in at least fp32."""
        order_N, counts_E = by_expert(choice.experts_TK, is_kept_TK, self.spec.experts)
        dispatch = planned(counts_E, self.axes.ep)
        rows_ND = picked(x_TD, order_N, self.spec.top_k)
        factors_N1 = None
        if self.spec.scale_gradients:
            factors_N1 = self._gradient_factors(counts_E, len(order_N), choice.gates_TK.dtype)
            # The experts between these two see scaled gradients; their inputs, gates and routers do not.
            rows_ND = with_scaled_gradient(rows_ND, 1 / factors_N1)
        rows_ND = dispatch.back(self.experts(dispatch.there(rows_ND), dispatch.counts_L))
        if factors_N1 is not None:
            rows_ND = with_scaled_gradient(rows_ND, factors_N1)
        out_TKD = put_back(rows_ND, order_N, choice.experts_TK.numel()).unflatten(0, choice.experts_TK.shape)
        # In the dtype of the gates.
        return (out_TKD * choice.gates_TK[..., None]).sum(1).to(x_TD.dtype)

    def _gradient_factors(self, counts_E: Tensor, num_rows: int, dtype: torch.dtype) -> Tensor:
        """For each row, mean load ÷ load of its expert, over the microbatch: experts learn alike, however many rows."""
        loads_E = all_reduced(counts_E, self.axes.microbatch).to(dtype)
        factors_E = loads_E.mean() / loads_E.clamp(min=1)
        return factors_E.repeat_interleave(counts_E, output_size=num_rows)[:, None]


def by_expert(experts_TK: Tensor, is_kept_TK: Tensor | None, num_experts: int) -> tuple[Tensor, Tensor]:
    """Places in (T, K), flattened, of the assignments that are kept, in the order of experts, and then of tokens; and
    how many each expert has."""
    experts_N = experts_TK.flatten()
    if is_kept_TK is None:
        return experts_N.argsort(stable=True), counted(experts_N, num_experts)
    behind_the_last = experts_N.masked_fill(~is_kept_TK.flatten(), num_experts)
    counts_E = counted(behind_the_last, num_experts + 1)[:-1]
    return behind_the_last.argsort(stable=True)[: int(counts_E.sum())], counts_E
