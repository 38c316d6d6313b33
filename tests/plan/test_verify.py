"""Which files are refused, and is the altered part named?"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forgeplan.compiler import emit
from forgeplan.diagnostics.refusal import Refusal
from forgeplan.plan.codec import dumps, layout
from forgeplan.plan.hashes import seal
from forgeplan.plan.verify import read
from tests.compiler.jobs import job

PLAN = emit(job())
BYTES = dumps(PLAN)


def altered(change: Callable[[dict[str, Any]], Any]) -> bytes:
    document = json.loads(BYTES)
    change(document)
    return layout(document).encode()


def refusal(data: bytes) -> Refusal:
    with pytest.raises(Refusal) as caught:
        read(data)
    return caught.value


def test_an_untouched_plan_is_read() -> None:
    assert read(BYTES) == PLAN


def test_white_space_and_key_order_are_no_alteration() -> None:
    document = json.loads(BYTES)
    assert read(json.dumps(dict(reversed(document.items()))).encode()) == PLAN


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (lambda d: d["job"]["optimizer"].update(lr="1/10"), "job"),
        (lambda d: d["program"].pop(), "program"),
        (lambda d: d["rank_classes"][0].update(num_ranks=5), "rank_classes"),
        (lambda d: d.update(steps=5), "steps"),
        (lambda d: d.update(note="x"), "note"),
        (lambda d: d.update(meaning="0" * 64), "its list of hashes"),
        (lambda d: d["parts"].update(job="0" * 64), "job"),
    ],
)
def test_an_altered_plan_is_refused_and_the_part_named(change: Callable[[dict[str, Any]], Any], part: str) -> None:
    found = refusal(altered(change))
    assert found.code.id == "FP1001"
    assert part in found.message


@pytest.mark.parametrize("version", [0, 2, "1", None])
def test_an_unknown_format_version_is_refused_with_both_versions(version: object) -> None:
    found = refusal(altered(lambda d: d.update(format_version=version)))
    assert found.code.id == "FP1002"
    assert repr(version) in found.message
    assert "reads version 1" in found.message


@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"{}", b"null", b"\xff\xfe", b"[" * 100_000, b'{"format_version": 1}']
)
def test_a_file_that_is_no_plan_is_refused(data: bytes) -> None:
    assert refusal(data).code.id == "FP1001"


def test_two_swapped_operations_are_refused_with_what_breaks() -> None:
    plan = emit(job({"apply": {"recompute": 0}}))
    build, recompute, fsdp, *rest = plan.program
    found = refusal(dumps(seal(attrs.evolve(plan, program=(build, fsdp, recompute, *rest)))))
    assert found.code.id == "FP1008"
    assert "every block is gathered twice" in found.message


def test_a_doubled_or_missing_operation_is_refused() -> None:
    doubled = refusal(dumps(seal(attrs.evolve(PLAN, program=(*PLAN.program, PLAN.program[-1])))))
    missing = refusal(dumps(seal(attrs.evolve(PLAN, program=PLAN.program[:-1]))))
    assert (doubled.code.id, missing.code.id) == ("FP1008", "FP1008")
    assert "initialise 2 times" in doubled.message
    assert "lacks initialise" in missing.message


@settings(max_examples=200, deadline=None)
@given(place=st.integers(0, len(BYTES) - 1), value=st.integers(0, 255))
def test_a_changed_byte_never_gives_another_plan_nor_another_error(place: int, value: int) -> None:
    data = BYTES[:place] + bytes([value]) + BYTES[place + 1 :]
    try:
        found: object = read(data)
    except Refusal as error:
        found = error.code.id
    assert found in (PLAN, "FP1001", "FP1002")


def test_reading_a_plan_imports_neither_torch_nor_the_compiler() -> None:
    code = (
        "import sys, forgeplan.plan.verify\n"
        "unwanted = ('torch', 'lark', 'networkx', 'forgeplan.compiler', 'forgeplan.dsl')\n"
        "bad = [m for m in sys.modules if m.startswith(unwanted)]\n"
        "sys.exit(str(bad) if bad else 0)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
