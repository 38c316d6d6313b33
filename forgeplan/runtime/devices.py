"""Which device does a rank compute on, and is it what the plan was compiled for?"""

from __future__ import annotations

import torch

from forgeplan.diagnostics.refusal import Refusal
from forgeplan.diagnostics.refusals import DEVICE
from forgeplan.plan.execution_plan import ExecutionPlan

_HBM_TOLERANCE = 0.03


def device_for(plan: ExecutionPlan, local_rank: int) -> torch.device:
    """The CPU where the plan says so, else the accelerator with the number of the local rank."""
    return torch.device("cpu") if plan.job.cluster.arch == "cpu" else torch.device("cuda", local_rank)


def check_device(plan: ExecutionPlan, local_rank: int) -> None:
    """Refusal FP1004 with what this rank's device lacks."""
    cluster = plan.job.cluster
    if cluster.arch == "cpu":
        return
    advice = "compile for this machine: `--set cluster.arch=…`, `--set cluster.hbm=…`"
    if not torch.cuda.is_available():
        problem = f"the plan is for {cluster.arch}, and this process has no accelerator"
        advice = "compile for this machine: `--set cluster.arch=cpu`, or check the driver with `forgeplan doctor`"
    elif torch.cuda.device_count() <= local_rank:
        problem = f"local rank {local_rank} has no device: this machine has {torch.cuda.device_count()}"
    else:
        problem = _shortfall(cluster.arch, cluster.hbm, local_rank)
    if problem:
        raise Refusal(DEVICE, problem, advice)


def architecture(local_rank: int) -> str:
    """The architecture of an accelerator in the plan language's words: `sm90`, `gfx942`."""
    properties = torch.cuda.get_device_properties(local_rank)
    if torch.version.hip:
        return str(properties.gcnArchName).split(":")[0]
    return f"sm{properties.major}{properties.minor}"


def _shortfall(arch: str, hbm: int | None, local_rank: int) -> str:
    found = architecture(local_rank)
    name = torch.cuda.get_device_name(local_rank)
    if not _is_at_least(found, arch):
        return f"the plan is for {arch}, and device {local_rank} ({name}) is {found}"
    total = torch.cuda.get_device_properties(local_rank).total_memory
    if hbm is not None and total < hbm * (1 - _HBM_TOLERANCE):
        return f"the plan needs {hbm:,} bytes of device memory, and device {local_rank} ({name}) has {total:,}"
    return ""


def _is_at_least(found: str, wanted: str) -> bool:
    if found.startswith("sm") and wanted.startswith("sm"):
        return int(found[2:]) >= int(wanted[2:])
    return found == wanted
