"""Is this file an execution plan that may be run?"""

from __future__ import annotations

import json
from typing import Any

from forgeplan.diagnostics.codes import code
from forgeplan.diagnostics.refusal import Refusal
from forgeplan.plan.codec import from_json
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.plan.hashes import HASHES, file_hash, meaning, part_hashes
from forgeplan.plan.job_codec import Malformed
from forgeplan.plan.operations import OPERATIONS, first_inversion
from forgeplan.plan.versions import to_present

FP1001 = code("FP1001", "the plan hashes to its own file hash, and every rank holds that hash")
FP1008 = code("FP1008", "the operations of a program stand in an order that computes what was planned")

_AGAIN = "compile the plan file again: `forgeplan compile FILE`; an execution plan is not edited by hand"


def read(data: bytes) -> ExecutionPlan:
    """The plan in `data`. Raises Refusal: FP1001 altered or damaged, FP1002 unknown version, FP1008 out of order."""
    document = _document(data)
    present = to_present(document)
    _check_hashes(document)
    try:
        plan = from_json(present)
    except Malformed as error:
        raise Refusal(FP1001, f"the plan is damaged at {error.path or 'its top'}: {error.why}", _AGAIN) from None
    if present is document and meaning(plan) != plan.meaning:
        raise Refusal(FP1001, "the plan was altered: its job or program is not what `meaning` was made from", _AGAIN)
    check_order(plan)
    return plan


def check_order(plan: ExecutionPlan) -> None:
    """Raises Refusal FP1008 if a step is missing, doubled, or stands where it would silently break another."""
    names = [operation.name for operation in plan.program]
    inverted = first_inversion(names)
    if inverted:
        earlier, later, breaks = inverted
        raise Refusal(
            FP1008,
            f"the program applies {earlier} before {later}: {breaks}",
            (f"{later} must come before {earlier}", _AGAIN),
        )
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            raise Refusal(FP1008, f"the program applies {name} {names.count(name)} times", _AGAIN)
    for name, operation in OPERATIONS.items():
        if operation.always and name not in names:
            raise Refusal(FP1008, f"the program lacks {name}: {operation.why}", _AGAIN)


def _document(data: bytes) -> dict[str, Any]:
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        raise Refusal(FP1001, "the file is no JSON, so it is no execution plan", _AGAIN) from None
    if not isinstance(document, dict) or "format_version" not in document:
        raise Refusal(FP1001, "the file is JSON, but no execution plan: it has no format_version", _AGAIN)
    return document


def _check_hashes(document: dict[str, Any]) -> None:
    stored, found = document.get("parts"), part_hashes(document)
    if not isinstance(stored, dict) or any(key not in document for key in HASHES):
        raise Refusal(FP1001, "the plan lacks its hashes, so it cannot be told whether it was altered", _AGAIN)
    altered = sorted(name for name in {*stored, *found} if stored.get(name) != found.get(name))
    if altered:
        raise Refusal(FP1001, f"the plan was altered after it was compiled: {', '.join(altered)}", _AGAIN)
    if file_hash(document["meaning"], stored) != document["file"]:
        raise Refusal(FP1001, "the plan was altered after it was compiled: its list of hashes", _AGAIN)
