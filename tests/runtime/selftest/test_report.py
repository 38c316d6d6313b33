"""Do people and programs read of a self-test what happened, and is the document the published one?"""

from __future__ import annotations

import json
from math import inf
from typing import Any

import jsonschema

from forgeplan.diagnostics.paint import painter
from forgeplan.plan.mesh import Mesh
from forgeplan.runtime.selftest.report import JSON_FORMAT_VERSION, STATUSES, Table, as_json, summary
from forgeplan.runtime.selftest.result import Deviation, Result
from forgeplan.runtime.selftest.row import Row
from tests.cli.commands import ROOT

SCHEMA = json.loads((ROOT / "docs/schemas/selftest.schema.json").read_text(encoding="utf-8"))
FSDP, TENSOR = Row("fsdp 2", Mesh(dp_shard=2), quick=True), Row("tp 2, ep 2", Mesh(tp=2, ep=2))
RESULTS = [
    Result(FSDP, "same", Deviation("loss of step 1", 2.5e-15, 1e-9), seconds=1.0),
    Result(TENSOR, "differs", Deviation("gradient of head.weight", 0.5, 1e-9), seconds=0.1234567),
    Result(TENSOR, "differs", Deviation("loss of step 2", inf, 1e-5)),
    Result(TENSOR, "failed", None, "rank 1: the process died", "the last words"),
    Result(FSDP, "not_run", None, "2 ranks: each takes a device, and there is 1"),
]


def test_a_line_says_how_far_off_a_layout_is_and_below_it_what_is_wrong() -> None:
    table = Table([FSDP, TENSOR], painter(False))
    assert [table.header(), *map(table.line, RESULTS)] == [
        "         layout      ranks  largest deviation",
        "same     fsdp 2          2  2.5e-15 of 1e-9",
        "differs  tp 2, ep 2      2  5.0e-1 of 1e-9\n         → gradient of head.weight",
        "differs  tp 2, ep 2      2  inf of 1e-5\n         → loss of step 2",
        "failed   tp 2, ep 2      2\n         → rank 1: the process died",
        "not run  fsdp 2          2\n         → 2 ranks: each takes a device, and there is 1",
    ]
    assert table.listed(FSDP) == "quick    fsdp 2          2  dp_shard 2"
    assert table.listed(TENSOR) == "         tp 2, ep 2      2  tp 2, ep 2"


def test_the_last_line_counts() -> None:
    assert summary(RESULTS) == "1 of 5 layouts train what one process trains; 2 differs; 1 failed; 1 not run"
    assert summary(RESULTS[:1]) == "1 of 1 layouts train what one process trains"


def read(results: list[Result]) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(as_json("cpu", results), parse_constant=lambda word: 1 / 0)
    jsonschema.validate(document, SCHEMA, jsonschema.Draft202012Validator)
    return document


def test_the_document_keeps_to_the_published_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"]["format_version"] == {"const": JSON_FORMAT_VERSION}
    assert SCHEMA["$defs"]["row"]["properties"]["status"]["enum"] == list(STATUSES)
    document = read(RESULTS)
    assert [document[status] for status in STATUSES] == [1, 2, 1, 1]
    rows = document["rows"]
    assert set(rows[0]) == set(SCHEMA["$defs"]["row"]["properties"])
    assert rows[0]["mesh"] == {"pp": 1, "dp_replicate": 1, "dp_shard": 2, "cp": 1, "tp": 1, "ep": 1}
    assert rows[1]["deviation"] == {"what": "gradient of head.weight", "value": 0.5, "within": 1e-9}
    assert (rows[2]["deviation"]["value"], rows[3]["details"]) == (None, "the last words")


def test_an_empty_table_is_a_document_too() -> None:
    assert read([])["rows"] == []
