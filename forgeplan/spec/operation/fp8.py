"""Which products are computed in 8-bit floating point, and how are they scaled?"""

from __future__ import annotations

from attrs import frozen

from forgeplan.spec import types as t
from forgeplan.spec.registry import component
from forgeplan.spec.setting import setting


@component("operation", "fp8", aliases=("float8",))
@frozen
class Fp8:
    """Linear layers in float8 (Micikevicius et al., 2022), through torchao."""

    recipe: str = setting(
        t.OneOf(
            ("tensorwise", "rowwise"),
            refused=(
                ("mxfp8", "`rowwise`: this executor has no block-scaled float8, which would need sm100"),
                ("nvfp4", "`rowwise`: this executor has no 4-bit float"),
            ),
        ),
        "one scale for a tensor, E5M2 for gradients; or a power of two for every row, E4M3 throughout",
        default="tensorwise",
    )
    include: tuple[str, ...] | str = setting(
        t.AnyOf((t.OneOf(("all",)), t.ListOf(t.Text()))),
        "patterns of names of linear layers to convert; `all` of them",
        default="all",
        example='["layers.*.mlp.*"]',
    )
    exclude: tuple[str, ...] = setting(
        t.ListOf(t.Text()), "patterns of names that stay as they are", default='["head"]', example='["head"]'
    )
    small: str = setting(
        t.OneOf(("skip", "convert")),
        "layers too small to gain, by torchao's thresholds for H100, where `include` is `all`",
        default="skip",
    )
    all_gather: bool = setting(
        t.Bool(), "fsdp gathers weights in float8, with scales computed after each update", default="false"
    )
    emulate: bool = setting(t.Bool(), "round to float8, multiply in fp32: on any device", default="false")
