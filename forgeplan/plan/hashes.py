"""Which two numbers tell plans apart: what is trained, and which bytes say so?

`meaning` covers what is trained and how: the job, the program, the format. Names, output paths, comments, spans, tools
and the spelling of equal values do not enter it, so it is the same on every machine. `file` covers the whole file.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import attrs

from forgeplan.plan.codec import canonical, to_json
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.plan.job_codec import encode
from forgeplan.spec import types as t
from forgeplan.spec.quantity import SEQUENCES
from forgeplan.spec.registry import components
from forgeplan.spec.setting import settings_of

HASHES = ("meaning", "file", "parts")
"""The keys of a plan that are made from the others."""


def seal(plan: ExecutionPlan) -> ExecutionPlan:
    """The plan with its hashes set; every change of a plan ends with this."""
    plan = attrs.evolve(plan, meaning=meaning(plan))
    document = to_json(plan)
    parts = part_hashes(document)
    return attrs.evolve(plan, parts=parts, file=file_hash(document["meaning"], parts))


def meaning(plan: ExecutionPlan) -> str:
    """Hash of what is trained: 64 hexadecimal digits."""
    job = encode(plan.job)
    job.pop("apply")  # the program says it in full
    _drop_outputs(job, type(plan.job))
    if plan.job.batch.global_.dimension == SEQUENCES:
        job["batch"]["global"] = {
            "amount": int(plan.job.batch.global_.amount * plan.job.batch.length),
            "unit": "tokens",
        }
    program = [attrs.asdict(operation) | {"name": operation.name} for operation in plan.program]
    for operation in program:
        operation.pop("placed_by")
    return digest({"format_version": plan.format_version, "job": job, "program": program, "steps": plan.steps})


def part_hashes(document: dict[str, Any]) -> dict[str, str]:
    """Hash of every part of a plan in JSON, so that an altered one can be named."""
    return {name: digest(value) for name, value in sorted(document.items()) if name not in HASHES}


def file_hash(meaning: str, parts: dict[str, str]) -> str:
    """Hash of the whole file, from the hashes of its parts."""
    return digest({"meaning": meaning, "parts": parts})


def digest(value: Any) -> str:
    return sha256(canonical(value)).hexdigest()


def _drop_outputs(record: dict[str, Any], block: type) -> None:
    """Remove every field of the record, at any depth, that is a path to be written."""
    for name, setting in settings_of(block).items():
        if isinstance(setting.type, t.PathText) and setting.type.output:
            record.pop(name)
        else:
            for inner in _blocks(setting.type):
                _drop_inner(record.get(name), inner)


def _drop_inner(value: Any, inner: type) -> None:
    tag = getattr(inner, "tag", None)
    if isinstance(value, dict) and value.get("component", tag) == tag:
        _drop_outputs(value, inner)


def _blocks(type_: t.FieldType) -> list[type]:
    """The blocks that a value of this type may be."""
    if isinstance(type_, t.AnyOf):
        return [block for alternative in type_.alternatives for block in _blocks(alternative)]
    if isinstance(type_, t.Block):
        return [type_.block]
    if isinstance(type_, t.Component):
        return list(components(type_.kind).values())
    return []
