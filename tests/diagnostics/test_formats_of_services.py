"""Do code hosts and CI systems get what their formats prescribe, at the right place of the right file?"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest

from forgeplan.diagnostics.codes import Code
from forgeplan.diagnostics.diagnostic import Diagnostic, Edit, Fix, Label, Severity
from forgeplan.diagnostics.formats import render_all
from forgeplan.diagnostics.pages import page
from forgeplan.diagnostics.source import Sources
from forgeplan.diagnostics.span import COMMAND_LINE, NOWHERE, Span
from tests.diagnostics.places import RULE, at, texts

SCHEMA = json.loads((Path(__file__).parent / "sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)
LINT = Code("unusual-rate", "a lint made up for a test", Severity.WARNING)
FILE = "plans/a b%ü.forge"


def sources_of(text: str, name: str = FILE) -> Sources:
    sources = Sources()
    sources.add(name, text)
    return sources


SOURCES = sources_of('tag = "𐐀𐐀", tp = 3\r\n\tseed = 1\r\n')
FOUND = [
    RULE.at(
        at(SOURCES, FILE, "3", "mesh.tp = 3"),
        "32 % 3 = 2, so: no\nway",
        at(SOURCES, FILE, "seed", "and this"),
        Label(NOWHERE, "the default is 1"),
        help="legal values: 1, 2",
        fixes=(Fix("write 2", (Edit(at(SOURCES, FILE, "3").span, "2"),)),),
        view="large@smoke",
    ),
    LINT.at(at(SOURCES, FILE, "seed"), "unusual \x1b[31m & <odd> \ud800"),
    RULE.at(Span(COMMAND_LINE, 0, 3), "no such plan"),
    RULE.at(None, "nothing bounds the run"),
]


def sarif(found: list[Diagnostic], sources: Sources = SOURCES, **options: Any) -> dict[str, Any]:
    log = json.loads(render_all(found, sources, format="sarif", **options))
    VALIDATOR.validate(log)
    run: dict[str, Any] = log["runs"][0]
    return run


def test_the_schema_is_the_one_of_the_standard() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    assert "SARIF) Version 2.1.0 JSON Schema" in SCHEMA["title"]
    assert not VALIDATOR.is_valid({"version": "2.1.0", "runs": [{"tool": {}}]})


def test_sarif_has_the_place_in_characters_and_the_file_as_a_uri() -> None:
    run = sarif(FOUND, checked=(FILE, "plans/good.forge"))
    result = next(r for r in run["results"] if r["ruleId"] == "FP0412" and "32 %" in r["message"]["text"])
    assert run["columnKind"] == "unicodeCodePoints"
    assert result["level"] == "error"
    assert result["message"]["text"] == "32 % 3 = 2, so: no\nway\nhelp: legal values: 1, 2"
    assert result["properties"] == {"view": "large@smoke"}
    place = result["locations"][0]
    assert place["message"] == {"text": "mesh.tp = 3"}
    assert place["physicalLocation"] == {
        "artifactLocation": {"uri": "plans/a%20b%25%C3%BC.forge", "uriBaseId": "PROJECT"},
        "region": {"startLine": 1, "startColumn": 18, "endLine": 1, "endColumn": 19, "charOffset": 17, "charLength": 1},
    }
    related = result["relatedLocations"]
    assert related[0]["physicalLocation"]["region"]["startLine"] == 2
    assert related[1]["logicalLocations"] == [{"name": "schema"}]
    assert result["fixes"][0]["artifactChanges"][0]["replacements"] == [
        {"deletedRegion": place["physicalLocation"]["region"], "insertedContent": {"text": "2"}}
    ]
    assert [a["location"]["uri"] for a in run["artifacts"]] == ["plans/a%20b%25%C3%BC.forge", "plans/good.forge"]


def test_sarif_explains_each_rule_once_by_its_page() -> None:
    run = sarif(FOUND)
    rules = run["tool"]["driver"]["rules"]
    known = page("FP0412")
    assert known is not None
    assert sorted(rule["id"] for rule in rules) == ["FP0412", "unusual-rate"]
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])
    rule = next(rule for rule in rules if rule["id"] == "FP0412")
    assert rule["shortDescription"]["text"] == known.rule
    assert known.reason.split()[0] in rule["help"]["text"]
    assert rule["help"]["markdown"].startswith("# FP0412: ")
    assert [rule["defaultConfiguration"]["level"] for rule in rules if "-" in rule["id"]] == ["warning"]


def test_files_are_relative_to_the_project_and_others_whole(tmp_path: Path) -> None:
    inside, outside = str(tmp_path / "p" / "x.forge"), str(tmp_path / "y z.forge")
    run = sarif([], texts(), checked=(inside, outside), root=tmp_path / "p")
    assert [a["location"] for a in run["artifacts"]] == [
        {"uri": "x.forge", "uriBaseId": "PROJECT"},
        {"uri": f"file://{tmp_path.as_posix()}/y%20z.forge"},
    ]


BEFORE = "a = { tp = 3 }\nb = { tp = 3, lr = 1 }\n"
MOVED = "# new\n\n  let x = 1\nb = { tp =  3,   lr = 1 }\r\na = { tp = 3 }\n"


def prints(text: str) -> list[str]:
    """Of every `3`, and of `{ … }` of b."""
    sources = sources_of(text)
    spans = [
        Span(FILE, found.start(), found.end()) for part in ("3", "(?<=b = ){.*}") for found in re.finditer(part, text)
    ]
    run = sarif(
        [RULE.at(Label(span, "tp" if span.end - span.start == 1 else ""), f"at {span}") for span in spans], sources
    )
    return sorted(result["partialFingerprints"]["forgeplanPlace/v1"] for result in run["results"])


def test_fingerprints_survive_moves_and_edits_of_other_lines() -> None:
    assert len(set(prints(BEFORE))) == 3
    assert prints(BEFORE) == prints(MOVED)
    assert prints(BEFORE) != prints(BEFORE.replace("lr = 1", "lr = 2"))


def test_github_gets_a_command_a_message_with_file_and_line() -> None:
    lines = render_all(FOUND, SOURCES, format="github").splitlines()
    assert len(lines) == len(FOUND)
    assert (
        "::error file=plans/a b%25ü.forge,line=1,endLine=1,col=18,endColumn=19,"
        "title=forgeplan FP0412 in large@smoke::32 %25 3 = 2, so: no%0Away%0Ahelp: legal values: 1, 2"
    ) in lines
    assert "::error title=forgeplan FP0412::nothing bounds the run" in lines
    assert any(line.startswith("::warning file=") and "line=2" in line and "␛[31m" in line for line in lines)
    assert all(re.fullmatch(r"::(error|warning|notice) [^:]*::.*", line) for line in lines)


def test_a_path_cannot_end_its_property() -> None:
    sources = sources_of("x", "a,line=9:b.forge")
    shown = render_all([RULE.at(Span("a,line=9:b.forge", 0, 1), "m")], sources, format="github")
    assert shown.startswith("::error file=a%2Cline=9%3Ab.forge,line=1,")


def test_junit_is_read_with_a_suite_a_file_and_a_case_a_message() -> None:
    text = render_all(FOUND, SOURCES, format="junit", checked=(FILE, "plans/good.forge"))
    root = ElementTree.fromstring(text.encode("utf-8"))
    assert (root.tag, root.get("tests"), root.get("failures")) == ("testsuites", "5", "3")
    suites = {suite.get("name"): suite for suite in root}
    assert set(suites) == {FILE, "plans/good.forge", "forgeplan"}
    assert [case.get("name") for case in suites["plans/good.forge"]] == ["nothing found"]
    error, warning = suites[FILE]
    assert (error.get("name"), error.get("file"), error.get("line")) == ("FP0412 at 1:18 in large@smoke", FILE, "1")
    failure = error.find("failure")
    assert failure is not None
    assert failure.get("message") == "32 % 3 = 2, so: no\nway"
    assert "legal values: 1, 2" in (failure.text or "")
    assert warning.find("failure") is None
    assert "unusual ␛[31m & <odd> ⟨U+D800⟩" in (warning.findtext("system-out") or "")
    assert sum(int(suite.get("tests") or 0) for suite in root) == 5


@pytest.mark.parametrize("format", ["sarif", "junit"])
def test_without_messages_a_whole_document_names_the_files(format: str) -> None:
    text = render_all([], SOURCES, format=format, checked=(FILE,))
    assert "nothing found" in text or json.loads(text)["runs"][0]["results"] == []
    assert render_all([], SOURCES, format="github") == ""
