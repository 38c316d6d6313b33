"""What does a person see while a run trains?

A line that is redrawn in place on a terminal, and one line a report anywhere else.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from time import monotonic
from typing import Protocol

from attrs import define, field

_SECONDS_BETWEEN_REDRAWS = 0.1
_BAR_WIDTH = 20
_ERASE = "\r\x1b[2K"


class Display(Protocol):
    def show(self, line: str, step: int, is_report: bool) -> None:
        """The state of the run after a step. One that is no report may be dropped."""

    def begin(self, what: str) -> None:
        """Something else than a step goes on now, and may take a while."""

    def say(self, line: str) -> None:
        """A line that stays."""

    def close(self) -> None: ...


@define
class PlainLines:
    """For logs and pipes: reports are printed, nothing is redrawn."""

    def show(self, line: str, step: int, is_report: bool) -> None:
        if is_report:
            print(line, flush=True)

    def begin(self, what: str) -> None:
        print(f"{what} …", flush=True)

    def say(self, line: str) -> None:
        print(line, flush=True)

    def close(self) -> None:
        pass


@define
class LiveLine:
    """The last line of a terminal, with a bar where the number of steps is known. Ten redraws a second at most."""

    total_steps: int | None
    now: Callable[[], float] = monotonic
    _drawn_at: float = field(default=float("-inf"), init=False)
    _text: str = field(default="", init=False)

    def show(self, line: str, step: int, is_report: bool) -> None:
        self._text = f"{_bar(step, self.total_steps)}{line}"
        if self.now() - self._drawn_at >= _SECONDS_BETWEEN_REDRAWS:
            self._draw()

    def begin(self, what: str) -> None:
        self._text = f"{what} …"
        self._draw()

    def say(self, line: str) -> None:
        # Three writes: what stays goes to the log as well, and the log leaves out what moves the cursor.
        sys.stdout.write(_ERASE)
        print(line, flush=True)
        self._draw()

    def close(self) -> None:
        self._draw()
        if self._text:
            sys.stdout.write("\x1b[0m\n")
        sys.stdout.flush()

    def _draw(self) -> None:
        self._drawn_at = self.now()
        width = shutil.get_terminal_size().columns - 1
        sys.stdout.write(_ERASE + self._text[:width])
        sys.stdout.flush()


def open_display(total_steps: int | None) -> Display:
    return LiveLine(total_steps) if sys.stdout.isatty() else PlainLines()


def _bar(step: int, total: int | None) -> str:
    if not total:
        return ""
    full = _BAR_WIDTH * min(step, total) // total
    return "━" * full + "╌" * (_BAR_WIDTH - full) + "  "


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
