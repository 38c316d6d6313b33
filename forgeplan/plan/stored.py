"""Which execution plan lies at a path: a file, a run directory or a checkpoint?"""

from __future__ import annotations

from pathlib import Path

from forgeplan.diagnostics.refusal import UsageError
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.plan.verify import read

_PLAN = "plan.json"


def is_stored(path: str) -> bool:
    """Whether a path is for `stored`, rather than a plan file."""
    return path.endswith(".json") or Path(path).is_dir()


def stored(path: str) -> ExecutionPlan:
    """The plan in a JSON file, of a run directory, or that a checkpoint was trained with; nothing else is read.

    Raises UsageError where there is none, Refusal for a file that is no plan or was altered.
    """
    place = Path(path)
    try:
        return read((place / _PLAN if place.is_dir() else place).read_bytes())
    except FileNotFoundError:
        if not place.is_dir():
            raise UsageError(f"there is no file {path}") from None
        checkpoints = sorted(found.parent.name for found in place.glob(f"*/{_PLAN}"))
        help = f"\n  help: name one of {', '.join(checkpoints)} in it" if checkpoints else ""
        raise UsageError(f"{path} is no run directory and no checkpoint: it has no {_PLAN}{help}") from None
    except OSError as reason:
        raise UsageError(f"{path} cannot be read: {(reason.strerror or type(reason).__name__).lower()}") from None
