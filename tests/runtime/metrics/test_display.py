"""What reaches the eye, and what reaches the log?"""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from forgeplan.runtime.metrics.display import LiveLine, PlainLines, open_display
from forgeplan.runtime.rank_log import open_log


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_line_is_redrawn_at_most_ten_times_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, moments = Terminal(), iter(i / 1000 for i in range(10_000))
    monkeypatch.setattr(sys, "stdout", terminal)
    assert isinstance(open_display(100), LiveLine)
    display = LiveLine(100, now=lambda: next(moments))
    for step in range(1, 101):
        display.show(f"step {step}", step, is_report=True)
    drawn = terminal.getvalue().count("\x1b[2K")
    assert 1 <= drawn <= 2, "100 steps in about 0.1 s"
    display.close()
    assert terminal.getvalue().endswith("━" * 20 + "  step 100\x1b[0m\n")


def test_what_is_said_stays_on_the_terminal_and_in_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    log = open_log(tmp_path / "logs" / "rank-0.log", 0)
    display = LiveLine(10)
    display.show("step 1", 1, is_report=True)
    display.say("step 1: held_out loss 2.0")
    display.close()
    log.flush()
    assert (tmp_path / "logs" / "rank-0.log").read_text().splitlines()[1:] == ["step 1: held_out loss 2.0"]
    assert "step 1: held_out loss 2.0\n" in terminal.getvalue()


def test_something_slow_is_named_while_it_lasts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    open_display(10).begin("step 5: evaluating held_out")
    assert capsys.readouterr().out == "step 5: evaluating held_out …\n"
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    open_display(10).begin("step 5: evaluating held_out")
    assert terminal.getvalue().endswith("step 5: evaluating held_out …")


def test_a_pipe_gets_reports_only(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    display = open_display(10)
    assert isinstance(display, PlainLines)
    display.show("step 1", 1, is_report=False)
    display.show("step 2", 2, is_report=True)
    assert capsys.readouterr().out == "step 2\n"


def test_a_closed_terminal_does_not_end_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(Terminal):
        def write(self, text: str) -> int:
            raise OSError(5, "Input/output error")

    monkeypatch.setattr(sys, "stdout", Gone())
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    open_log(tmp_path / "rank-0.log", 0)
    print("still here", flush=True)
    assert "still here" in (tmp_path / "rank-0.log").read_text()
