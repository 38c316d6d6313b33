"""Do the forms for people in a hurry and for programs say the same as the full one, and keep to what is published?"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from forgeplan.diagnostics.codes import Code
from forgeplan.diagnostics.diagnostic import Diagnostic, Edit, Fix, Label, Severity
from forgeplan.diagnostics.formats import FORMATS, JSON_FORMAT_VERSION, render_all, summary
from forgeplan.diagnostics.source import Sources
from forgeplan.diagnostics.span import NOWHERE, Span
from tests.diagnostics.places import RULE, at, texts

SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schemas/diagnostics.schema.json").read_text(encoding="utf-8"))
LINT = Code("unusual-rate", "a lint made up for a test", Severity.WARNING)
SOURCES = texts(plan_forge='\t\tlearing_rate = 3e-4\ntag = "𐐀𐐀", seed = 1\n')
FOUND = [
    LINT.at(at(SOURCES, "plan.forge", "seed", "here"), "the seed is unusual", Label(NOWHERE, "the default is 0")),
    RULE.at(
        at(SOURCES, "plan.forge", "learing_rate"),
        "no field `learing_rate`",
        help="did you mean `lr`?",
        notes="why",
        fixes=Fix("write `lr`", (Edit(Span("plan.forge", 2, 14), "lr"),)),
        view="large@smoke",
    ),
    RULE.at(None, "nothing bounds\nthe run"),
]


def as_json(found: list[Diagnostic], sources: Sources = SOURCES) -> dict[str, object]:
    read: dict[str, object] = json.loads(render_all(found, sources, format="json"))
    jsonschema.validate(read, SCHEMA, jsonschema.Draft202012Validator)
    return read


def test_the_published_schema_is_one_and_has_the_version_that_is_written() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"]["format_version"] == {"const": JSON_FORMAT_VERSION}


def test_concise_is_one_line_for_each_message_in_order() -> None:
    assert render_all(FOUND, SOURCES, format="concise").splitlines() == [
        "error[FP0412]: nothing bounds the run",
        "plan.forge:1:3: error[FP0412]: no field `learing_rate` (in `large@smoke`)",
        "plan.forge:2:13: warning[unusual-rate]: the seed is unusual",
    ]


def test_json_has_lines_and_columns_from_one_in_characters_and_offsets_from_zero() -> None:
    read = as_json(FOUND)
    assert (read["errors"], read["warnings"]) == (2, 1)
    bare, field, lint = read["diagnostics"]
    assert bare["labels"] == []
    assert field == {
        "code": "FP0412",
        "severity": "error",
        "message": "no field `learing_rate`",
        "view": "large@smoke",
        "labels": [
            {
                "file": "plan.forge",
                "start": {"offset": 2, "line": 1, "column": 3},
                "end": {"offset": 14, "line": 1, "column": 15},
                "text": "",
            }
        ],
        "help": ["did you mean `lr`?"],
        "notes": ["why"],
        "fixes": [
            {
                "title": "write `lr`",
                "safety": "ask",
                "edits": [
                    {
                        "file": "plan.forge",
                        "start": {"offset": 2, "line": 1, "column": 3},
                        "end": {"offset": 14, "line": 1, "column": 15},
                        "replacement": "lr",
                    }
                ],
            }
        ],
    }
    assert lint["labels"][0]["start"] == {"offset": 34, "line": 2, "column": 13}
    assert lint["labels"][1] == {"file": "<schema>", "start": None, "end": None, "text": "the default is 0"}


def test_json_holds_texts_as_they_are_even_what_cannot_be_written_as_utf8() -> None:
    read = as_json([RULE.at(None, "a \x1b[31m and a \ud800")])
    assert read["diagnostics"][0]["message"] == "a \x1b[31m and a \ud800"
    assert render_all([RULE.at(None, "\ud800")], SOURCES, format="json").encode("utf-8")


def test_without_messages_there_is_nothing_to_print_but_a_whole_document_for_programs() -> None:
    assert render_all([], SOURCES) == render_all([], SOURCES, format="concise") == ""
    assert as_json([]) == {"format_version": 1, "files": [], "errors": 0, "warnings": 0, "diagnostics": []}


@pytest.mark.parametrize("format", FORMATS)
def test_the_order_in_which_messages_are_found_does_not_show(format: str) -> None:
    assert render_all(FOUND, SOURCES, format=format) == render_all(FOUND[::-1], SOURCES, format=format)


def test_an_unknown_format_is_refused_with_those_that_exist() -> None:
    with pytest.raises(ValueError, match="'xml' is no format of diagnostics; these are: full, concise, json"):
        render_all(FOUND, SOURCES, format="xml")


def test_the_summary_counts_by_severity() -> None:
    assert summary(FOUND) == "2 errors, 1 warning"
    assert summary([]) == ""


def test_printing_messages_loads_nothing_heavy() -> None:
    code = "import sys, forgeplan.diagnostics.formats, forgeplan.diagnostics.pages; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {"rich", "torch", "lark", "networkx", "click"} & set(loaded) == set()
