"""How did a row fare?"""

from __future__ import annotations

from math import inf, isfinite

from attrs import frozen

from forgeplan.runtime.selftest.row import Row


@frozen
class Deviation:
    """One number or tensor that was compared. `value` is relative; infinite where there is nothing to compare with."""

    what: str
    value: float
    within: float
    kind: str = ""
    """Alike for every step or tensor: loss, gradient norm, learning rate, initial value, gradient or weight."""

    @property
    def is_same(self) -> bool:
        return self.value <= self.within

    @property
    def excess(self) -> float:
        """In multiples of what is allowed."""
        if not isfinite(self.value):
            return inf
        return self.value / self.within if self.within else inf if self.value else 0.0


@frozen
class Result:
    """`status` is same, differs, failed (a rank raised or died) or not_run."""

    row: Row
    status: str
    deviation: Deviation | None = None
    """The largest, measured by what is allowed."""
    reason: str = ""
    """In one line, why it failed or was not run."""
    details: str = ""
    seconds: float = 0.0

    @property
    def is_bad(self) -> bool:
        return self.status in ("differs", "failed")
