"""Does the doctor name what ails a machine, with one thing to do?"""

from __future__ import annotations

from pathlib import Path

import pytest

from forgeplan.runtime.doctor import examine


def test_every_finding_that_is_not_good_has_a_fix(tmp_path: Path) -> None:
    findings = list(examine(tmp_path))
    assert [f.name for f in findings] == [
        "python", "torch", "packages", "devices", "threads", "gloo", "host name", "disk", "folder",
    ]  # fmt: skip
    assert all(f.good == (f.fix == "") for f in findings)


def test_more_threads_than_cores_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "4096")
    finding = next(f for f in examine(tmp_path) if f.name == "threads")
    assert not finding.good
    assert finding.fix == "unset OMP_NUM_THREADS"
