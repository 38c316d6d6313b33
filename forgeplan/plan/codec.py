"""How does an execution plan become bytes, and bytes an execution plan again, without losing a digit?

The text is canonical: the same plan gives the same bytes on every machine. Exact numbers are integers or "p/q", a
quantity is {"amount", "unit"}, a component is a record with its name under "component". Keys are sorted.
"""

from __future__ import annotations

import json
from typing import Any

from cattrs import Converter
from cattrs.errors import BaseValidationError, ClassValidationError

from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.plan.job_codec import Malformed, decode_block, encode
from forgeplan.plan.operations import OPERATIONS, Operation
from forgeplan.spec.plan import Plan

WIDTH = 110
"""Records and lists that fit into this many characters stand on one line."""


def dumps(plan: ExecutionPlan) -> bytes:
    """The plan as canonical JSON in UTF-8. Hashes are written as they stand on the plan; see `hashes.seal`."""
    return (layout(to_json(plan)) + "\n").encode()


def loads(data: bytes) -> ExecutionPlan:
    """The plan in `data`, unchecked. Raises Malformed where a part is missing or misshapen; see `verify.read`."""
    try:
        document = json.loads(data)
    except ValueError as error:
        raise Malformed("", f"it is no JSON: {error}") from None
    return from_json(document)


def to_json(plan: ExecutionPlan) -> dict[str, Any]:
    """The plan as JSON values: dictionaries, lists, strings, integers, booleans, None."""
    document = _converter.unstructure(plan)
    document["job"] = encode(plan.job)
    document["program"] = [{"name": operation.name, **_converter.unstructure(operation)} for operation in plan.program]
    return dict(document)


def from_json(document: Any) -> ExecutionPlan:
    """The inverse of `to_json`. Raises Malformed."""
    if not isinstance(document, dict):
        raise Malformed("", "it is no JSON object")
    try:
        return _converter.structure(document, ExecutionPlan)
    except BaseValidationError as error:
        raise _first_fault(error) from None
    except (TypeError, ValueError, KeyError) as error:
        raise Malformed("", str(error)) from None


def canonical(value: Any) -> bytes:
    """JSON values as the bytes that are hashed: sorted keys, no white space."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def layout(value: Any, indent: str = "") -> str:
    """JSON values as text for people and for diffs: what fits on a line stands on one."""
    flat = json.dumps(value, sort_keys=True, ensure_ascii=False)
    if not isinstance(value, dict | list) or not value or len(indent) + len(flat) <= WIDTH:
        return flat
    deeper = indent + "  "
    if isinstance(value, dict):
        lines = [f"{deeper}{json.dumps(k, ensure_ascii=False)}: {layout(value[k], deeper)}" for k in sorted(value)]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    return "[\n" + ",\n".join(deeper + layout(item, deeper) for item in value) + f"\n{indent}]"


def _operation(record: Any, _: type) -> Operation:
    if not isinstance(record, dict) or record.get("name") not in OPERATIONS:
        known = ", ".join(OPERATIONS)
        raise Malformed("program", f"an operation is one of {known}, and this is {json.dumps(record)}")
    fields = {k: v for k, v in record.items() if k != "name"}
    try:
        return OPERATIONS[record["name"]](**fields)
    except TypeError as error:
        raise Malformed("program", f"{record['name']}: {error}") from None


def _first_fault(error: BaseException, path: str = "") -> Malformed:
    """The innermost first fault of a cattrs error, with the path that leads to it."""
    if isinstance(error, Malformed):
        return error
    if isinstance(error, ClassValidationError):
        for inner, note in error.group_exceptions()[0]:
            return _first_fault(inner, note.name)
        return _first_fault(error.group_exceptions()[1][0], path)
    if isinstance(error, BaseValidationError):
        return _first_fault(error.exceptions[0], path)
    return Malformed(path, f"{type(error).__name__}: {error}")


def _make_converter() -> Converter:
    converter = Converter(forbid_extra_keys=True)
    converter.register_structure_hook(Plan, lambda record, _: decode_block(record, Plan, "job"))
    converter.register_structure_hook(Operation, _operation)
    converter.register_unstructure_hook(Plan, lambda _: None)
    return converter


_converter = _make_converter()
