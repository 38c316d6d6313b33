"""How are layers dealt to pipeline stages, and in which order do microbatches pass them?"""

from __future__ import annotations

from typing import Any

from attrs import frozen

from forgeplan.spec import types as t
from forgeplan.spec.registry import component
from forgeplan.spec.setting import Change, setting

SCHEDULES = ("gpipe", "one_f_one_b", "looped_bfs", "interleaved", "zero_bubble", "zbv", "dualpipe_v")
ONE_STAGE = ("gpipe", "one_f_one_b")
TWO_STAGES = ("zbv", "dualpipe_v")
SPLIT_BACKWARD = ("zero_bubble", "zbv", "dualpipe_v")
"""Schedules that compute the gradients of weights later than those of activations."""


@frozen
class Weights:
    """What embedding and head count as, in layers, when layers are dealt to stages."""

    embedding: int = setting(
        t.COUNT, "layers that the embedding counts as", default="1", within="[0, )", change=Change.RESHARD
    )
    head: int = setting(t.COUNT, "layers that the head counts as", default="1", within="[0, )", change=Change.RESHARD)


@component("operation", "pp", aliases=("pipeline", "pipeline_parallel"))
@frozen
class Pp:
    """Pipeline parallel: each rank holds one or several stages of consecutive layers."""

    schedule: str = setting(
        t.OneOf(
            SCHEDULES,
            aliases=(
                ("1f1b", "one_f_one_b"),
                ("interleaved_1f1b", "interleaved"),
                ("interleaved_zero_bubble", "zero_bubble"),
                ("dualpipev", "dualpipe_v"),
                ("interleaved1f1b", "interleaved"),
                ("loopedbfs", "looped_bfs"),
                ("interleavedzerobubble", "zero_bubble"),
                ("zbvzerobubble", "zbv"),
            ),
        ),
        "order in which stages work on microbatches",
        default="one_f_one_b",
        change=Change.COSMETIC,
    )
    stages_per_rank: int = setting(
        t.COUNT,
        "stages of one rank",
        default="if self.schedule == gpipe or self.schedule == one_f_one_b then 1 else 2",
        within="[1, )",
        change=Change.RESHARD,
    )
    cuts: Any = setting(
        t.optional(t.ListOf(t.COUNT)),
        "layers before which a new stage begins; `none` deals layers by weight",
        default="none",
        change=Change.RESHARD,
        example="[8, 16, 24]",
        aliases=("split_points",),
    )
    weights: Weights = setting(
        t.Block(Weights), "what embedding and head count as", default="{}", change=Change.RESHARD
    )
