"""Are the pages and schemas that are made from the code those of this code, whole, and true of every compiled plan?"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Any

import jsonschema
import pytest

from forgeplan.analysis import analyse
from forgeplan.compiler import emit
from forgeplan.plan.codec import to_json
from forgeplan.plan.job_codec import Malformed, decode_block, encode
from forgeplan.reference.entries import groups
from forgeplan.reference.json_schema import json_schema
from forgeplan.reference.pages import page
from forgeplan.reference.wording import range_text
from forgeplan.spec import types as t
from forgeplan.spec.plan import Plan
from forgeplan.spec.quantity import SECONDS, SHARE
from forgeplan.spec.registry import components, kinds
from forgeplan.spec.setting import settings_of
from tests.docs.reference import GENERATED
from tests.house.tree import ROOT

PLANS = sorted((ROOT / "plans").glob("*.forge"))
VALIDATOR = jsonschema.Draft202012Validator(json_schema())


@pytest.mark.parametrize("path", GENERATED)
def test_what_is_made_from_the_code_is_up_to_date(path: str) -> None:
    assert (ROOT / path).read_text(encoding="utf-8") == GENERATED[path](), "run `make reference`"


@pytest.mark.parametrize("path", [path for path in GENERATED if path.endswith(".md")])
def test_every_link_of_a_page_leads_somewhere(path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    anchors = re.findall(r'<a id="([^"]+)">', text)
    targets = re.findall(r"\]\(([^)]+)\)", text)
    assert len(anchors) == len(set(anchors))
    assert {target[1:] for target in targets if target.startswith("#")} <= set(anchors)
    files = [target for target in targets if not target.startswith("#")]
    assert [file for file in files if not ((ROOT / path).parent / file).exists()] == []


def test_the_page_has_every_field_of_every_component_with_its_words() -> None:
    sections = {section.block: section for group in groups() for section in group.sections}
    for kind in kinds():
        for name, block in components(kind).items():
            section = sections[block]
            assert section.title == name
            assert [entry.name for entry in section.entries] == list(settings_of(block))
    for section in sections.values():
        assert section.doc[0], section.title
        for entry in section.entries:
            assert entry.doc, (section.title, entry.name)
            assert entry.default or entry.without_default, (section.title, entry.name)
            assert entry.default or entry.example or entry.without_default == "computed", (section.title, entry.name)


def test_ranges_are_written_in_the_units_of_the_language() -> None:
    def text(range: str, type_: t.FieldType) -> str:
        return range_text(t.Interval.parse(range), type_)

    assert text("[0, 1]", t.Measure(SHARE)) == "0% .. 100%"
    assert text("(0, 1)", t.optional(t.Measure(SHARE))) == "between 0% and 100%"
    assert text("[0, 1)", t.ListOf(t.REAL, length=2)) == "≥ 0, < 1"
    assert text("(0, )", t.DURATION) == "> 0"
    assert text("[60, )", t.optional(t.Measure(SECONDS))) == "≥ 60 s"
    assert text("[1, 1048576]", t.COUNT) == "1 .. 1_048_576"


class Page(HTMLParser):
    """Ids, targets and unclosed elements of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.targets: list[str] = []
        self.loaded: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.ids += [found["id"] or ""] if "id" in found else []
        self.targets += [found["href"] or ""] if "href" in found else []
        self.loaded += [tag] if "src" in found or tag in ("script", "link", "img") else []
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_in_html_is_well_formed_and_needs_nothing_else() -> None:
    found = Page()
    found.feed(page("html"))
    assert found.open == []
    assert found.loaded == []
    assert len(found.ids) == len(set(found.ids))
    assert {target.removeprefix("#") for target in found.targets} <= set(found.ids)
    assert {f"{s.anchor}.{e.name}" for g in groups() for s in g.sections for e in s.entries} <= set(found.ids)


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(json_schema())
    references = re.findall(r'"#/\$defs/([^"]+)"', json.dumps(json_schema()))
    assert set(references) <= set(json_schema()["$defs"])


@pytest.fixture(scope="module")
def jobs() -> dict[str, Any]:
    """The job of every shipped plan, as it stands in a compiled one."""
    return {path.stem: encode(job.plan) for path in PLANS for job in analyse(str(path)).jobs}


def test_the_job_of_every_shipped_plan_is_valid(jobs: dict[str, Any]) -> None:
    assert len(jobs) >= 7
    for name, job in jobs.items():
        assert [error.message for error in VALIDATOR.iter_errors(job)] == [], name
    analysis = analyse(str(PLANS[0]))
    assert to_json(emit(analysis.jobs[0]))["job"] in jobs.values()


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("seed", "1"),
        ("seed", -1),
        ("batch.micro", 0),
        ("batch.global.unit", "bytes"),
        ("optimizer.component", "adam"),
        ("optimizer.lr", "1/0"),
        ("optimizer.betas", [0]),
        ("precision.params", "fp16"),
        ("model.colour", "red"),
        ("mesh.tp", None),
        ("apply", [{"component": "fsdp"}]),
        ("eval.unseen.every", 20),
    ],
)
def test_a_job_that_is_none_is_not_valid(path: str, value: object, jobs: dict[str, Any]) -> None:
    job = copy.deepcopy(jobs["debug"])
    *above, last = path.split(".")
    inner = job
    for name in above:
        inner = inner[name]
    inner[last] = value
    assert not VALIDATOR.is_valid(job)


ODD = (None, True, 0, 1, -1, "x", "1/2", [], {}, {"amount": 1, "unit": "tokens"}, {"component": "skip"})


def _places(value: Any, *above: str | int) -> Iterator[tuple[str | int, ...]]:
    """The way to every value inside a job."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield (*above, key)
        yield from _places(one, *above, key)


def _decodes(job: Any) -> bool:
    try:
        decode_block(job, Plan, "job")
    except Malformed:
        return False
    return True


def test_what_the_schema_allows_can_be_read(jobs: dict[str, Any]) -> None:
    """Every value of a job in turn becomes some others; what cannot be read is not valid, and the rest is, in range."""
    for number, (*above, last) in enumerate(_places(jobs["debug"])):
        job = copy.deepcopy(jobs["debug"])
        inner = job
        for key in above:
            inner = inner[key]
        for odd in ODD[number % 3 :: 3]:
            inner[last] = odd
            errors = list(VALIDATOR.iter_errors(job))
            assert _decodes(job) or errors, (*above, last, odd)
            if _decodes(job) and errors:
                assert isinstance(odd, int) or odd == {"amount": 1, "unit": "tokens"}, (*above, last, odd)
