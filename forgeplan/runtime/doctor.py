"""Is this machine fit to train, and if not, what is the one thing to do?"""

from __future__ import annotations

import os
import platform
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from importlib import metadata
from pathlib import Path

import torch
from attrs import frozen

from forgeplan.runtime.devices import architecture

_OLDEST_PYTHON = (3, 11)
_OLDEST_TORCH = (2, 11)
_LEAST_FREE_BYTES = 5 * 10**9
_PACKAGES = (
    "attrs",
    "cattrs",
    "lark",
    "networkx",
    "click",
    "rich",
    "numpy",
    "safetensors",
    "tokenizers",
    "tensorboard",
)


@frozen
class Finding:
    """One thing that was looked at. `fix` is a line to follow, "" where all is well."""

    name: str
    good: bool
    text: str
    fix: str = ""


def examine(folder: Path) -> Iterator[Finding]:
    """Every check in turn; `folder` is where runs would be written. Takes a second or two."""
    checks: tuple[Callable[[], Finding], ...] = (
        _python,
        _torch,
        _packages,
        _devices,
        _threads,
        _gloo,
        _host_name,
        lambda: _disk(folder),
        lambda: _writable(folder),
    )
    for check in checks:
        yield check()


def _python() -> Finding:
    good = sys.version_info[:2] >= _OLDEST_PYTHON
    text = f"{platform.python_version()} on {platform.system()} {platform.machine()}"
    return Finding("python", good, text, "" if good else "install Python 3.11 or newer")


def _torch() -> Finding:
    found = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2] if part.isdecimal())
    good = found >= _OLDEST_TORCH
    return Finding("torch", good, torch.__version__, "" if good else "pip install --upgrade torch")


def _packages() -> Finding:
    missing, versions = [], []
    for package in _PACKAGES:
        try:
            versions.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            missing.append(package)
    if missing:
        return Finding("packages", False, f"missing: {', '.join(missing)}", f"pip install {' '.join(missing)}")
    return Finding("packages", True, ", ".join(versions))


def _devices() -> Finding:
    if torch.cuda.is_available():
        names = [f"{torch.cuda.get_device_name(i)} ({architecture(i)})" for i in range(torch.cuda.device_count())]
        return Finding("devices", True, f"{len(names)} × {names[0]}" if len(set(names)) == 1 else ", ".join(names))
    if Path("/dev/nvidiactl").exists() or Path("/dev/kfd").exists():
        fix = "install the torch build for this driver: https://pytorch.org/get-started/locally"
        return Finding("devices", False, "there is an accelerator, and this torch cannot use it", fix)
    return Finding("devices", True, "no accelerator: plans for `arch = cpu` run here")


def _threads() -> Finding:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    set_to = os.environ.get("OMP_NUM_THREADS")
    text = f"{cores} cores, {torch.get_num_threads()} threads a process"
    if set_to is not None and set_to.isdecimal() and int(set_to) > cores:
        return Finding("threads", False, f"{text}, OMP_NUM_THREADS = {set_to}", "unset OMP_NUM_THREADS")
    return Finding("threads", True, text)


def _gloo() -> Finding:
    """A group of one process sums a number: the library loads and finds a network interface."""
    from torch import distributed
    from torch._C._distributed_c10d import HashStore

    if distributed.is_initialized():
        return Finding("gloo", True, "in use")
    try:
        store = HashStore()
        distributed.init_process_group("gloo", store=store, rank=0, world_size=1, timeout=timedelta(seconds=10))
        value = torch.ones(1)
        distributed.all_reduce(value)
        distributed.destroy_process_group()
    except (RuntimeError, ValueError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        return Finding("gloo", False, reason, "set GLOO_SOCKET_IFNAME to a network interface, such as lo")
    return Finding("gloo", value.item() == 1, "a sum over one process is right")


def _host_name() -> Finding:
    name = socket.gethostname()
    try:
        address = socket.getaddrinfo(name, None)[0][4][0]
    except OSError:
        fix = f"add a line `127.0.0.1 {name}` to /etc/hosts; one machine alone works without"
        return Finding("host name", False, f"{name} does not resolve", fix)
    return Finding("host name", True, f"{name} is {address}")


def _disk(folder: Path) -> Finding:
    free = shutil.disk_usage(folder).free
    good = free >= _LEAST_FREE_BYTES
    fix = "" if good else "free some space: a checkpoint takes 12 bytes a parameter with AdamW in fp32"
    return Finding("disk", good, f"{free / 1e9:,.1f} GB free in {folder}", fix)


def _writable(folder: Path) -> Finding:
    good = os.access(folder, os.W_OK)
    return Finding("folder", good, f"{folder} is {'' if good else 'not '}writable", "" if good else "change to another")
