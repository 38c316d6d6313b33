"""Does the first signal ask and the second one end, whatever the main thread is doing?"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUSY = """
import signal, sys, time
from forgeplan.runtime import signals
received = signals.install()
received.announce_with(lambda name: print("first", name, flush=True))
print("ready", flush=True)
if sys.argv[1] == "python":
    while not received.stop_requested or sys.argv[2] == "stay":
        time.sleep(0.01)
else:
    import threading
    threading.Lock().acquire()
    blocked = threading.Lock(); blocked.acquire()
    blocked.acquire(timeout=30)
time.sleep(0.2)
received.run_is_over()
print("leaving", received.first, flush=True)
# Handlers of other kinds are gone while the interpreter and its libraries end, which takes a while.
assert all(signal.getsignal(number) == signal.SIG_IGN for number in signals.HANDLED)
time.sleep(0.3)
"""


def start(where: str, stay: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(
        [sys.executable, "-c", BUSY, where, stay], stdout=subprocess.PIPE, text=True, env=environment
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT])
def test_the_first_signal_asks_and_nothing_matters_when_the_run_is_over(number: signal.Signals) -> None:
    process = start("python", "leave")
    assert process.stdout is not None
    process.send_signal(number)
    assert process.stdout.readline() == f"first {number.name}\n"
    assert process.stdout.readline() == f"leaving {number.name}\n"
    process.send_signal(number)
    assert process.wait(10) == 0


@pytest.mark.parametrize("where", ["python", "native code"])
def test_the_second_signal_ends_at_once(where: str) -> None:
    process = start(where, "stay")
    assert process.stdout is not None
    process.send_signal(signal.SIGTERM)
    if where == "python":
        assert process.stdout.readline() == "first SIGTERM\n"
    else:
        time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    assert process.wait(5) == 130
