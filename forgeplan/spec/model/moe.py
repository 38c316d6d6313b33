"""Which layers have experts, and which tensors stand in such a layer?"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from attrs import frozen

from forgeplan.spec import types as t
from forgeplan.spec.cut import COLUMN, EXPERTS, PER_TOKEN, ROW, WHOLE
from forgeplan.spec.model.parameter import Parameter
from forgeplan.spec.setting import setting


@frozen
class Moe:
    """Mixture of experts in place of the MLP: a router sends each token to `top_k` of the experts."""

    experts: int = setting(
        t.COUNT,
        "routed experts of a layer",
        within="[1, )",
        example="8",
        aliases=("num_experts", "num_local_experts", "n_routed_experts"),
    )
    top_k: int = setting(
        t.COUNT,
        "experts that a token is sent to",
        within="[1, )",
        example="2",
        aliases=("num_experts_per_tok", "moe_top_k"),
    )
    ffn: int = setting(
        t.COUNT,
        "hidden width of one expert",
        default="model.ffn",
        within="[1, )",
        aliases=("moe_intermediate_size",),
    )
    every: int = setting(
        t.COUNT, "every so many layers one has experts, the last of each run", default="1", within="[1, )"
    )
    first_dense: int = setting(
        t.COUNT,
        "layers before the first that may have experts",
        default="0",
        within="[0, )",
        aliases=("first_k_dense_replace",),
    )
    shared: int = setting(
        t.COUNT,
        "experts that every token goes through, side by side as one MLP of their summed width",
        default="0",
        within="[0, )",
        aliases=("n_shared_experts", "num_shared_experts"),
    )
    router: Any = setting(t.Component("router"), "how tokens choose experts", default="softmax_topk {}")
    groups: int = setting(
        t.COUNT,
        "groups of neighbouring experts, ranked by the sum of their two best scores",
        default="1",
        within="[1, )",
        aliases=("n_group",),
    )
    group_limit: int = setting(
        t.COUNT,
        "groups that a token may choose from",
        default="self.groups",
        within="[1, )",
        aliases=("topk_group",),
    )
    capacity: Fraction | None = setting(
        t.optional(t.REAL),
        "most assignments of an expert in a microbatch, as a factor on its even share; others are dropped",
        default="none",
        within="(0, )",
        aliases=("capacity_factor",),
    )
    balance: Fraction = setting(
        t.REAL,
        "weight of the load-balance loss over a microbatch (Switch, arXiv 2101.03961, equation 4)",
        default="0",
        within="[0, )",
        aliases=("router_aux_loss_coef", "aux_loss_weight"),
    )
    sequence_balance: Fraction = setting(
        t.REAL,
        "weight of the load-balance loss over each sequence (DeepSeek-V3, equation 17)",
        default="0",
        within="[0, )",
        aliases=("seq_aux_loss_coef",),
    )
    z: Fraction = setting(
        t.REAL,
        "weight of the router's z-loss, mean squared log-sum of exponentials (ST-MoE, arXiv 2202.08906, equation 5)",
        default="0",
        within="[0, )",
        aliases=("z_loss", "router_z_loss_coef"),
    )
    scale_gradients: bool = setting(
        t.Bool(),
        "multiply the gradient of an expert by mean load ÷ its load",
        default="false",
    )

    def is_at(self, layer: int) -> bool:
        """Whether the layer with this number, from 0, has experts."""
        return layer >= self.first_dense and (layer + 1) % self.every == 0

    def parameters(self, at: str, dim: int, gated: bool) -> Iterator[Parameter]:
        """What stands below `at` in place of an MLP; `gated` as the MLPs of the model are. None has a bias."""
        e, f, wide = self.experts, self.ffn, self.shared * self.ffn
        yield Parameter(f"{at}.router.weight", (e, dim), "router", PER_TOKEN)
        for name in ("w_gate", "w_up") if gated else ("w_up",):
            yield Parameter(f"{at}.experts.{name}", (e, f, dim), "experts", EXPERTS)
        yield Parameter(f"{at}.experts.w_down", (e, dim, f), "experts_residual", EXPERTS)
        if not self.shared:
            return
        for name in ("w_gate", "w_up") if gated else ("w_up",):
            yield Parameter(f"{at}.shared.{name}.weight", (wide, dim), "linear", COLUMN)
        yield Parameter(f"{at}.shared.w_down.weight", (dim, wide), "residual", ROW)

    def buffers(self, at: str) -> Iterator[Parameter]:
        """State below `at` that no gradient changes: the bias that balances a sigmoid router."""
        if self.router.has_bias:
            yield Parameter(f"{at}.router.bias", (self.experts,), "buffer", WHOLE)
