"""Does an editor see what is wrong, where it is, of the text that it shows?"""

from __future__ import annotations

import asyncio

import pytest
from lsprotocol import types as lsp

from tests.lsp.conftest import Editor, Start

pytestmark = pytest.mark.asyncio(loop_scope="module")

EMOJI = '  tag = "𐐀𐐀𐐀𐐀", lerning_rate = 1'


def _range(line: int, start: int, end: int) -> lsp.Range:
    return lsp.Range(lsp.Position(line, start), lsp.Position(line, end))


async def test_a_faulty_plan_is_marked_at_the_fault(editor: Editor, plan: str) -> None:
    uri = editor.open("faulty.forge", plan.replace("lr = 1e-3", "lrr = 1e-3"))
    found = {one.code: one for one in await editor.problems(uri)}
    assert found["FP0301"].range == _range(10, 22, 25)
    assert found["FP0301"].severity is lsp.DiagnosticSeverity.Error
    assert found["FP0301"].source == "forgeplan"
    assert "did you mean `lr`?" in found["FP0301"].message


async def test_a_plan_without_fault_is_said_to_be_without(editor: Editor, plan: str) -> None:
    assert await editor.problems(editor.open("fine.forge", plan)) == []


@pytest.mark.parametrize(("encoding", "start_at", "end"), [("utf-16", 20, 32), ("utf-8", 28, 40), ("utf-32", 16, 28)])
async def test_places_are_right_behind_characters_outside_the_basic_plane(
    start: Start, plan: str, encoding: str, start_at: int, end: int
) -> None:
    """C005: in each unit that the protocol knows."""
    editor = await start(encodings=[encoding])
    uri = editor.open("wide.forge", plan.replace("  budget", f"{EMOJI}\n  budget"))
    ranges = [one.range for one in await editor.problems(uri)]
    assert _range(11, start_at, end) in ranges


async def test_tabs_line_ends_and_a_mark_at_the_start_shift_nothing(editor: Editor, plan: str) -> None:
    """C004 in an editor: a tab is one character; CRLF ends a line; a byte order mark is a character of its line."""
    text = "\ufeff" + plan.replace("  optimizer = adamw { lr", "\t\toptimizer = adamw { lrr").replace("\n", "\r\n")
    found = {one.code: one for one in await editor.problems(editor.open("crlf.forge", text))}
    assert found["FP0301"].range == _range(10, 22, 25)


async def test_the_last_word_is_about_the_last_version(editor: Editor, plan: str) -> None:
    """C006: twenty changes in a tenth of a second, wrong and right in turn; then closed and opened again."""
    broken = plan.replace("lr = 1e-3", "lrr = 1e-3")
    uri = editor.open("fast.forge", broken)
    for version in range(2, 22):
        editor.change(uri, plan if version % 2 else broken, version)
        await asyncio.sleep(0.005)
    assert await editor.problems(uri, 21) == []
    await asyncio.sleep(0.5)
    versions = [one.version or 0 for one in editor.of(uri)]
    assert versions == sorted(versions)
    assert versions[-1] == 21
    editor.close(uri)
    editor.published.clear()
    editor.open("fast.forge", broken)
    assert [one.code for one in await editor.problems(uri, 1)] != []
    await asyncio.sleep(0.3)
    assert editor.of(uri)[-1].diagnostics != ()


async def test_a_closed_document_has_no_problems_left(editor: Editor, plan: str) -> None:
    uri = editor.open("closed.forge", plan.replace("lr = 1e-3", "lrr = 1e-3"))
    assert await editor.problems(uri) != []
    editor.close(uri)
    await asyncio.sleep(0.3)
    assert list(editor.of(uri)[-1].diagnostics) == []


async def test_imports_are_read_from_buffers_before_files(editor: Editor, plan: str) -> None:
    """And a change of an imported buffer is seen by the one that imports it."""
    (editor.folder / "lib.forge").write_text("forge 1\n\nlet width = 64\n")
    text = plan.replace("forge 1\n", 'forge 1\n\nfrom "lib.forge" import width\n').replace("dim = 64", "dim = width")
    uri = editor.open("importing.forge", text)
    assert await editor.problems(uri) == []
    editor.published.clear()
    library = editor.open("lib.forge", "forge 1\n\nlet width = 63\n")
    assert "FP05" in str([one.code for one in await editor.problems(uri)])
    editor.published.clear()
    editor.change(library, "forge 1\n\nlet width = 128\n", 2)
    assert await editor.problems(uri) == []
    editor.published.clear()
    editor.change(library, "forge 1\n\nlet breadth = 128\n", 3)
    found = {one.code: one for one in await editor.problems(uri)}
    assert found["FP0204"].range.start.line == 2
    editor.close(library)


async def test_a_fault_of_an_imported_file_is_shown_at_the_import(editor: Editor, plan: str) -> None:
    (editor.folder / "bad.forge").write_text("forge 1\n\nlet width = 64 +\n")
    uri = editor.open("above.forge", plan.replace("forge 1\n", 'forge 1\n\nimport "bad.forge" as bad\n'))
    (found,) = [one for one in await editor.problems(uri) if str(one.code).startswith("FP01")]
    assert found.range == _range(2, 7, 18)
    assert found.related_information is not None
    assert found.related_information[0].location.uri == editor.uri("bad.forge")
    assert found.related_information[0].location.range.start.line == 2


@pytest.mark.parametrize("far", [False, True], ids=["direct", "through another"])
async def test_a_fault_is_shown_at_the_import_that_leads_to_it(editor: Editor, plan: str, far: bool) -> None:
    """Also where another import has a file of the same name."""
    for folder, value in (("one", "64"), ("two", "64 +")):
        (editor.folder / folder).mkdir(exist_ok=True)
        (editor.folder / folder / "lib.forge").write_text(f"forge 1\n\nlet width = {value}\n")
    (editor.folder / "between.forge").write_text('forge 1\n\nimport "two/lib.forge" as lib\n')
    faulty = "between.forge" if far else "two/lib.forge"
    lines = f'forge 1\n\nimport "one/lib.forge" as one\nimport "{faulty}" as two\n'
    uri = editor.open(f"leading-{far}.forge", plan.replace("forge 1\n", lines))
    (found,) = [one for one in await editor.problems(uri) if str(one.code).startswith("FP01")]
    assert found.range == _range(3, 7, 9 + len(faulty))


async def test_every_place_that_takes_part_is_told(editor: Editor, plan: str) -> None:
    uri = editor.open("twice.forge", plan.replace("lr = 1e-3", "lr = 1e-3, lr = 2e-3"))
    (found,) = [one for one in await editor.problems(uri) if one.code == "FP0303"]
    assert found.related_information is not None
    assert [one.location.range.start.line for one in found.related_information] == [10]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "forge 1",
        "\0",
        "plan {",
        '"""',
        "((((((((",
        "\ud800",
        "\u2028",
        "forge 1\nplan a extends a {}\n",
        "{" * 5_000,
    ],
    ids=["empty", "edition", "nul", "open", "string", "brackets", "surrogate", "separator", "circle", "deep"],
)
async def test_no_text_stops_the_server(editor: Editor, plan: str, text: str) -> None:
    uri = editor.open(f"odd-{abs(hash(text))}.forge", text)
    await editor.problems(uri)
    editor.change(uri, plan, 2)
    assert await editor.problems(uri, 2) == []
    editor.close(uri)


async def test_a_document_that_was_never_saved_is_checked_too(editor: Editor, plan: str) -> None:
    item = lsp.TextDocumentItem("untitled:Untitled-1", "forge", 1, plan.replace("lr = 1e-3", "lrr = 1e-3"))
    editor.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
    assert "FP0301" in [one.code for one in await editor.problems(item.uri)]


async def test_problems_are_fetched_by_editors_that_do_so_and_not_sent_too(start: Start, plan: str) -> None:
    editor = await start("neovim")
    uri = editor.open("fetched.forge", plan.replace("lr = 1e-3", "lrr = 1e-3"))
    report = await editor.client.text_document_diagnostic_async(
        lsp.DocumentDiagnosticParams(lsp.TextDocumentIdentifier(uri))
    )
    assert isinstance(report, lsp.RelatedFullDocumentDiagnosticReport)
    assert "FP0301" in [one.code for one in report.items]
    editor.change(uri, plan, 2)
    report = await editor.client.text_document_diagnostic_async(
        lsp.DocumentDiagnosticParams(lsp.TextDocumentIdentifier(uri))
    )
    assert isinstance(report, lsp.RelatedFullDocumentDiagnosticReport)
    assert list(report.items) == []
    assert editor.published == []
