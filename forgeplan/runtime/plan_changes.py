"""What is different between the plan of a checkpoint and the plan that goes on from it?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from forgeplan.plan.codec import dumps
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.runtime.checkpoint.load import load_plan

_NAMED = 12


def changes_since(checkpoint: Path, plan: ExecutionPlan) -> list[str]:
    """One line for each value of the job that differs; none where the two mean the same."""
    then = json.loads(load_plan(checkpoint))
    if then.get("meaning") == plan.meaning:
        return []
    before, after = dict(_leaves(then.get("job"))), dict(_leaves(json.loads(dumps(plan))["job"]))
    different = sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))
    lines = [f"  {path}: {_shown(before, path)} → {_shown(after, path)}" for path in different[:_NAMED]]
    more = len(different) - len(lines)
    return ["the plan has changed since this checkpoint:", *lines, *([f"  and {more} more"] if more > 0 else [])]


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else str(key))
    else:
        yield path, value


def _shown(leaves: dict[str, Any], path: str) -> str:
    return json.dumps(leaves[path], ensure_ascii=False) if path in leaves else "nothing"
