"""What happens at a non-finite loss or gradient?"""

from __future__ import annotations

from attrs import frozen

from forgeplan.spec import types as t
from forgeplan.spec.registry import component
from forgeplan.spec.setting import Change, setting


@component("nonfinite", "stop")
@frozen
class Stop:
    """The run stops with an error; the step changes nothing."""


@component("nonfinite", "skip")
@frozen
class Skip:
    """Every rank skips the step: weights and moments stay, data advances. Beyond the budget the run ends, failed."""

    budget: int = setting(
        t.STEP_COUNT, "skipped steps of the whole run", default="10 steps", within="[0, )", change=Change.COSMETIC
    )
