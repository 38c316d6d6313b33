"""Does `selftest` end with the exit code of what it found, and print nothing but what was asked for?"""

from __future__ import annotations

import json

import pytest
import torch

from forgeplan.runtime.selftest import table
from forgeplan.runtime.selftest.row import Row
from tests.cli.conftest import Give


def test_a_layout_that_trains_the_same_is_shown_with_its_deviation(give: Give) -> None:
    said = give("selftest", "--only", "one process, recompute")
    assert (said.exit_code, said.err) == (0, "")
    header, line, blank, last = said.out.splitlines()
    assert header.split() == ["layout", "ranks", "largest", "deviation"]
    assert line.startswith("same     one process, recompute      1  ")
    assert line.endswith(" of 1e-9")
    assert (blank, last) == ("", "1 of 1 layouts train what one process trains")


def test_a_layout_that_fails_is_said_and_the_exit_code_too(give: Give, monkeypatch: pytest.MonkeyPatch) -> None:
    impossible = Row("impossible", model={"attention": "none at all", "norm": "none"})
    monkeypatch.setattr(table, "TABLE", (Row("possible"), impossible))
    said = give("selftest", "--all")
    assert said.exit_code == 1
    assert "\nfailed   impossible      1\n         → rank 0: KeyError: 'none'\n" in said.out
    assert said.out.endswith("\n1 of 2 layouts train what one process trains; 1 failed\n")
    document = json.loads(give("selftest", "--all", "--json").out)
    assert (document["same"], document["failed"]) == (1, 1)
    assert "Traceback" in document["rows"][1]["details"]


def test_names_are_listed_and_nothing_is_run(give: Give) -> None:
    quick, every = give("selftest", "--list").out.splitlines(), give("selftest", "--list", "--all").out.splitlines()
    assert all(line.startswith("quick    ") for line in quick)
    assert len(every) == len(table.TABLE) > len(quick)
    document = json.loads(give("selftest", "--list", "--json").out)
    assert (document["not_run"], len(document["rows"])) == (len(quick), len(quick))


def test_what_is_not_there_is_a_mistake_in_the_command_line(give: Give, monkeypatch: pytest.MonkeyPatch) -> None:
    assert give("selftest", "--only", "no such row").exit_code == 2
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    said = give("selftest", "--device", "cuda")
    assert (said.exit_code, said.out) == (2, "")
    assert said.err.startswith("error: --device cuda: torch finds no such device here\n  help: ")


def test_rows_that_need_more_devices_than_there_are_are_not_run(give: Give, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    said = give("selftest", "--device", "cuda", "--only", "fsdp 2, tp 2")
    assert said.exit_code == 0
    assert said.out.count("→ 4 ranks: each takes a device, and there is 1\n") == 2
    assert said.out.endswith("\n0 of 4 layouts train what one process trains; 4 not run\n")
