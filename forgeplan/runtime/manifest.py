"""What was this run, on what did it run, and when? Written for a person who asks a year later."""

from __future__ import annotations

import os
import platform
import socket
import subprocess
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.runtime.files import json_bytes, read_json_object, replace
from forgeplan.runtime.run_directory import RunDirectory

_PACKAGES = ("forgeplan-torch", "torch", "torchao", "numpy", "tokenizers", "safetensors", "attrs")


def begin(
    directory: RunDirectory, plan: ExecutionPlan, decision: str, world: int, certificate: dict[str, Any] | None
) -> None:
    """Add a session to manifest.json: plan and certificate, versions, sources of the code, hardware, and where training
    goes on."""
    before = read_json_object(directory.manifest) or {}
    sessions = before.get("sessions", [])
    session = {
        "started": _now(),
        "decision": decision,
        "plan_meaning": plan.meaning,
        "plan_file": plan.file,
        "world": world,
        "command": sys.argv,
        "versions": versions(),
        "git": git_state(Path.cwd()),
        "hardware": hardware(),
        "certificate": certificate,
    }
    content = {
        "run": plan.name,
        "plan_sources": plan.sources,
        "sessions": [*(sessions if isinstance(sessions, list) else []), session],
    }
    replace(directory.manifest, json_bytes(content))


def end(directory: RunDirectory, outcome: str, step: int, exit_code: int) -> None:
    """Complete the last session."""
    content = read_json_object(directory.manifest)
    if content is None or not isinstance(content.get("sessions"), list) or not content["sessions"]:
        return
    content["sessions"][-1] |= {"ended": _now(), "outcome": outcome, "step": step, "exit_code": exit_code}
    replace(directory.manifest, json_bytes(content))


def last_outcome(directory: RunDirectory) -> str | None:
    """How the last session ended; None if it did not, or if there is none."""
    sessions = (read_json_object(directory.manifest) or {}).get("sessions")
    last = sessions[-1] if isinstance(sessions, list) and sessions else None
    return str(last["outcome"]) if isinstance(last, dict) and "outcome" in last else None


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that decide numbers."""
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def git_state(folder: Path) -> dict[str, Any] | None:
    """Commit of the folder's repository and whether tracked files differ from it; None outside of one."""
    try:
        commit = _git(folder, "rev-parse", "HEAD")
        return {"commit": commit, "changed": bool(_git(folder, "status", "--porcelain", "--untracked-files=no"))}
    except (OSError, subprocess.SubprocessError):
        return None


def hardware() -> dict[str, Any]:
    """The machine of this process."""
    found: dict[str, Any] = {
        "host": socket.gethostname(),
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "torch_threads": torch.get_num_threads(),
    }
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        found["memory_bytes"] = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    if torch.cuda.is_available():
        found["devices"] = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return found


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=10, check=True).stdout.strip()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
