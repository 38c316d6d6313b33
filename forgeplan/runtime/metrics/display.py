"""What does a person see while a run trains?

A line that is redrawn in place on a terminal, and one line a report anywhere else.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import monotonic
from typing import Any, Protocol

from attrs import define, field

_SECONDS_BETWEEN_REDRAWS = 0.1


class Display(Protocol):
    def show(self, line: str, step: int) -> None:
        """The state of the run after a step; may be dropped if the last one is too recent."""

    def say(self, line: str) -> None:
        """A line that stays."""

    def close(self) -> None: ...


@define
class PlainLines:
    """For logs and pipes: what is shown is printed, nothing is redrawn."""

    def show(self, line: str, step: int) -> None:
        print(line, flush=True)

    def say(self, line: str) -> None:
        print(line, flush=True)

    def close(self) -> None:
        pass


@define
class LiveLine:
    """One line at the bottom of a terminal, with a bar where the number of steps is known."""

    _progress: Any
    _task: Any
    _now: Callable[[], float] = monotonic
    _drawn: float = field(default=float("-inf"), init=False)

    @classmethod
    def start(cls, first_step: int, total_steps: int | None) -> LiveLine:
        from rich.progress import BarColumn, Progress, TextColumn

        columns = (BarColumn(bar_width=20), TextColumn("{task.description}"))
        progress = Progress(*columns, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
        progress.start()
        return cls(progress, progress.add_task("", total=total_steps, completed=first_step))

    def show(self, line: str, step: int) -> None:
        now = self._now()
        if now - self._drawn < _SECONDS_BETWEEN_REDRAWS:
            return
        self._drawn = now
        self._progress.update(self._task, description=line, completed=step)
        self._progress.refresh()

    def say(self, line: str) -> None:
        self._progress.console.print(line, markup=False, highlight=False, soft_wrap=True)

    def close(self) -> None:
        self._progress.stop()


def open_display(first_step: int, total_steps: int | None) -> Display:
    return LiveLine.start(first_step, total_steps) if sys.stdout.isatty() else PlainLines()


def count(number: float) -> str:
    """Three digits and a letter: 12.3k, 4.56M."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"


def duration(seconds: float) -> str:
    """0:42, 12:03, 3:04:05, 2d 03:04."""
    whole = round(seconds)
    minutes, seconds = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 48:
        days, hours = divmod(hours, 24)
        return f"{days}d {hours:02}:{minutes:02}"
    return f"{hours}:{minutes:02}:{seconds:02}" if hours else f"{minutes}:{seconds:02}"
