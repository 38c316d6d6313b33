"""What does a reader see for the failing plan of every page? `pytest --snapshot-update` writes it anew, for review."""

from __future__ import annotations

import json
import re
from pathlib import Path

import attrs
import jsonschema
import pytest
from rich.cells import cell_len
from syrupy.assertion import SnapshotAssertion

from forgeplan.diagnostics import pages
from forgeplan.diagnostics.diagnostic import Diagnostic
from forgeplan.diagnostics.formats import render_all
from forgeplan.diagnostics.source import Sources
from tests.docs.harness import diagnose, files_of, without_markers

CODES = [code for code in pages.all_codes() if (page := pages.page(code)) and page.fails]
SCHEMA = json.loads((Path(__file__).parents[2] / "docs/schemas/diagnostics.schema.json").read_text(encoding="utf-8"))
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")

Found = tuple[list[Diagnostic], Sources]


@pytest.fixture(params=CODES)
def found(request: pytest.FixtureRequest) -> Found:
    page = pages.page(request.param)
    assert page is not None
    diagnostics, sources = diagnose(without_markers(files_of(page, "Fails")))
    return [_anywhere(diagnostic) for diagnostic in diagnostics], sources


def _anywhere(diagnostic: Diagnostic) -> Diagnostic:
    """The same, whatever the folder in which the tests run."""
    here = Path.cwd().resolve()

    def moved(texts: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(text.replace(str(here), "/home/me/plans").replace(str(here.parent), "/home/me") for text in texts)

    return attrs.evolve(diagnostic, help=moved(diagnostic.help), notes=moved(diagnostic.notes))


def test_every_message_reads_as_it_was_looked_at(found: Found, snapshot: SnapshotAssertion) -> None:
    assert render_all(*found) == snapshot


def test_every_message_keeps_the_width_and_colours_change_nothing_else(found: Found) -> None:
    for width in (50, 80, 120):
        plain = render_all(*found, width=width)
        for line in plain.splitlines():
            assert cell_len(line) <= width or len(line.split()) <= 3
        assert ESCAPE.sub("", render_all(*found, width=width, color=True)) == plain


def test_every_message_is_one_line_when_concise_and_valid_for_programs(found: Found) -> None:
    diagnostics, sources = found
    assert len(render_all(diagnostics, sources, format="concise").splitlines()) == len(diagnostics)
    read = json.loads(render_all(diagnostics, sources, format="json"))
    jsonschema.validate(read, SCHEMA, jsonschema.Draft202012Validator)
    assert len(read["diagnostics"]) == len(diagnostics)


def test_messages_have_a_place_and_their_places_lie_in_their_files(found: Found) -> None:
    diagnostics, sources = found
    for diagnostic in diagnostics:
        for label in diagnostic.labels:
            source = sources.get(label.span.file)
            assert source is None or 0 <= label.span.start <= label.span.end <= len(source.text)
