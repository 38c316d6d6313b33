"""What do SIGTERM, SIGUSR1 and Ctrl-C do to a run?

The first asks for a save at the next step boundary and an orderly end (exit code 75), the second ends the process at
once (130). Signals are counted by a thread that the interpreter wakes through a pipe, so that a second one works also
while the main thread waits in a collective, a save or an evaluation.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable

from attrs import define

from forgeplan.runtime.options import ExitCode

HANDLED = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)


@define
class Signals:
    """The signals this process got so far. Install once, in the main thread, as early as possible."""

    first: str = ""
    """Name of the first signal, "" before it."""
    _announce: Callable[[str], None] | None = None
    _announced: bool = False
    _over: bool = False

    @property
    def stop_requested(self) -> bool:
        return bool(self.first)

    def announce_with(self, announce: Callable[[str], None]) -> None:
        """Call this with the signal's name when the first one comes; now if it has come and nobody was told."""
        self._announce = announce
        if self.first:
            self._tell()

    def run_is_over(self) -> None:
        """From here on everything is saved; signals change nothing any more. Call it in the main thread."""
        self._over = True
        # Of other handlers the interpreter goes back to the defaults at its end, and a signal would end it then.
        for number in HANDLED:
            signal.signal(number, signal.SIG_IGN)

    def received(self, number: int) -> None:
        if self._over:
            return
        name = signal.Signals(number).name
        if self.first:
            _end_at_once()
        self.first = name
        self._tell()

    def _tell(self) -> None:
        if self._announce is not None and not self._announced:
            self._announced = True
            self._announce(self.first)


def install() -> Signals:
    """Handle SIGTERM, SIGUSR1 and SIGINT from now on."""
    signals = Signals()
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    for number in HANDLED:
        # The handler itself has nothing to do: the interpreter has written the number into the pipe by then.
        signal.signal(number, lambda number, frame: None)
    threading.Thread(target=_listen, args=(reader, signals), name="signals", daemon=True).start()
    return signals


def _listen(reader: int, signals: Signals) -> None:
    while data := os.read(reader, 16):
        for number in data:
            if number in HANDLED:
                signals.received(number)


def _end_at_once() -> None:
    """No exit handlers, no destructors: they may wait for ranks that are gone. What is committed stays committed."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):  # Nobody may be reading any more.
            stream.flush()
    os._exit(ExitCode.ABORTED)
