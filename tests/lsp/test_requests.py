"""Does each request of an editor get its answer, through the protocol?"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException

from tests.lsp.conftest import Editor, Start

pytestmark = pytest.mark.asyncio(loop_scope="module")


def identifier(uri: str) -> lsp.TextDocumentIdentifier:
    return lsp.TextDocumentIdentifier(uri)


def edited(text: str, edits: Any) -> str:
    """The text after edits of ASCII lines."""
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    for edit in sorted(edits, key=lambda e: (e.range.start.line, e.range.start.character), reverse=True):
        start = starts[edit.range.start.line] + edit.range.start.character
        end = starts[edit.range.end.line] + edit.range.end.character
        text = text[:start] + edit.new_text + text[end:]
    return text


async def actions(editor: Editor, uri: str, line: int, character: int, only: list[str] | None = None) -> list[Any]:
    at = lsp.Position(line, character)
    context = lsp.CodeActionContext([], only=only)  # type: ignore[arg-type]
    params = lsp.CodeActionParams(identifier(uri), lsp.Range(at, at), context)
    return list(await editor.client.text_document_code_action_async(params) or ())


async def test_a_fix_is_offered_where_the_fault_is_and_mends_it(editor: Editor, plan: str) -> None:
    faulty = plan.replace("lr = 1e-3", "lrr = 1e-3")
    uri = editor.open("fix.forge", faulty)
    assert await actions(editor, uri, 5, 4) == []
    (fix,) = [one for one in await actions(editor, uri, 10, 23) if one.kind == lsp.CodeActionKind.QuickFix]
    assert fix.title == "write `lr`"
    assert [one.code for one in fix.diagnostics] == ["FP0301"]
    assert edited(faulty, fix.edit.changes[uri]) == plan


async def test_a_lint_can_be_allowed_where_it_speaks(editor: Editor, plan: str) -> None:
    told = plan.replace("lr = 1e-3", "lr = 1e-1")
    uri = editor.open("allow.forge", told)
    (found,) = await editor.problems(uri)
    assert found.code == "unusual-rate"
    (action,) = await actions(editor, uri, 10, 28)
    assert action.title == "allow unusual-rate here"
    silenced = edited(told, action.edit.changes[uri])
    assert "  # forge: allow unusual-rate\n  optimizer = " in silenced
    editor.change(uri, silenced, 2)
    assert await editor.problems(uri, 2) == []


async def test_all_safe_fixes_are_one_action(editor: Editor, plan: str) -> None:
    faulty = plan.replace("tokenizer = byte", "tokenizer: byte").replace("1e-3 }", "1e-3 };")
    uri = editor.open("all.forge", faulty)
    (fix,) = await actions(editor, uri, 0, 0, only=["source.fixAll"])
    assert fix.kind == "source.fixAll.forgeplan"
    assert edited(faulty, fix.edit.changes[uri]).replace(" = byte", "=byte") == plan.replace(" = byte", "=byte")


async def test_formatting_changes_only_the_lines_that_are_not_in_form(editor: Editor, plan: str) -> None:
    crooked = plan.replace("  optimizer = adamw { lr = 1e-3 }", "      optimizer=adamw {lr=1e-3}")
    uri = editor.open("crooked.forge", crooked)
    options = lsp.FormattingOptions(2, True)
    edits = await editor.client.text_document_formatting_async(lsp.DocumentFormattingParams(identifier(uri), options))
    assert edits is not None
    assert [(e.range.start.line, e.range.end.line) for e in edits] == [(10, 11)]
    assert edited(crooked, edits) == plan
    broken = editor.open("broken.forge", "forge 1\nplan a {")
    assert not await editor.client.text_document_formatting_async(
        lsp.DocumentFormattingParams(identifier(broken), options)
    )


async def test_a_document_is_outlined(editor: Editor, plan: str) -> None:
    text = (
        plan
        + "\nplan tall extends small {\n  model.layers = 4\n\n  profile smoke { budget = { steps = 2 steps } }\n}\n"
    )
    uri = editor.open("outline.forge", text)
    found = await editor.client.text_document_document_symbol_async(lsp.DocumentSymbolParams(identifier(uri)))
    first, second = found or ()
    assert isinstance(first, lsp.DocumentSymbol)
    assert isinstance(second, lsp.DocumentSymbol)
    assert (first.name, second.name, second.detail) == ("small", "tall", "extends small")
    assert [one.name for one in first.children or ()][:3] == ["cluster", "model", "tokenizer"]
    assert [one.name for one in second.children or ()] == ["model.layers", "smoke"]


async def test_the_workspace_is_searched_in_closed_files_too(editor: Editor, plan: str) -> None:
    (editor.folder / "sub").mkdir(exist_ok=True)
    (editor.folder / "sub" / "closed.forge").write_text(plan.replace("plan small", "plan remarkable"))
    found = await editor.client.workspace_symbol_async(lsp.WorkspaceSymbolParams("rmrkbl"))
    assert [one.name for one in found or ()] == ["remarkable"]
    assert (found or ())[0].location.uri.endswith("/sub/closed.forge")


async def test_bodies_lists_comments_and_imports_fold(editor: Editor, plan: str) -> None:
    text = "# one\n# two\n" + plan.replace("import cpu_host\n", 'import cpu_host\nfrom "std:models" import llama3_8b\n')
    uri = editor.open("fold.forge", text)
    found = await editor.client.text_document_folding_range_async(lsp.FoldingRangeParams(identifier(uri)))
    folds = [(one.start_line, one.end_line, one.kind) for one in found or ()]
    assert folds == [(0, 1, "comment"), (4, 5, "imports"), (7, 14, None)]


async def test_a_selection_grows_by_what_encloses_it(editor: Editor, plan: str) -> None:
    uri = editor.open("select.forge", plan)
    params = lsp.SelectionRangeParams(identifier(uri), [lsp.Position(10, 22)])
    found = await editor.client.text_document_selection_range_async(params)
    chain, one = [], (found or [None])[0]
    while one is not None:
        chain.append((one.range.start.line, one.range.start.character, one.range.end.line, one.range.end.character))
        one = one.parent
    assert chain[0] == (10, 22, 10, 24)
    assert (10, 22, 10, 31) in chain
    assert (10, 20, 10, 33) in chain
    assert (10, 2, 10, 33) in chain
    assert chain[-1][:2] == (0, 0)
    assert len(chain) == len(set(chain))


async def test_imports_are_links_those_of_the_library_too(editor: Editor, plan: str) -> None:
    (editor.folder / "mine.forge").write_text("forge 1\n\nlet width = 64\n")
    text = plan.replace("forge 1\n", 'forge 1\n\nfrom "mine.forge" import width\nimport "absent.forge" as gone\n')
    uri = editor.open("links.forge", text)
    found = await editor.client.text_document_document_link_async(lsp.DocumentLinkParams(identifier(uri)))
    targets = [str(one.target) for one in found or ()]
    assert targets[0] == editor.uri("mine.forge")
    assert targets[1].endswith("/forgeplan/std/clusters.forge")
    assert len(targets) == 2


async def test_a_plan_is_compiled_and_explained_from_above_it(editor: Editor, plan: str) -> None:
    uri = editor.open("lens.forge", plan)
    lenses = await editor.client.text_document_code_lens_async(lsp.CodeLensParams(identifier(uri)))
    commands = {one.command.command: one.command for one in lenses or () if one.command}
    assert set(commands) == {"forgeplan.compile", "forgeplan.explain", "forgeplan.run"}
    assert list(commands["forgeplan.run"].arguments or ()) == [uri, "small"]

    async def execute(name: str) -> str:
        params = lsp.ExecuteCommandParams(name, [uri, "small"])
        return str(await editor.client.workspace_execute_command_async(params))

    assert (await execute("forgeplan.compile")).startswith("small compiles: ")
    assert "── MEMORY ──" in await execute("forgeplan.explain")
    editor.change(uri, plan.replace("dim = 64", "dim = 63"), 2)
    assert "error[FP05" in await execute("forgeplan.compile")


async def test_a_document_that_is_not_open_has_no_answer_and_no_fault(editor: Editor) -> None:
    uri = editor.uri("never.forge")
    assert not await actions(editor, uri, 0, 0)
    assert not await editor.client.text_document_folding_range_async(lsp.FoldingRangeParams(identifier(uri)))


async def test_many_requests_while_a_person_types_are_all_answered(editor: Editor, plan: str) -> None:
    uri = editor.open("busy.forge", plan)
    asked = []
    for version in range(2, 30):
        editor.change(uri, plan + f"# {version}\n" * (version % 3), version)
        params = lsp.DocumentSymbolParams(identifier(uri))
        asked.append(asyncio.ensure_future(editor.client.text_document_document_symbol_async(params)))
        asked.append(asyncio.ensure_future(actions(editor, uri, 10, 4)))
    answers = await asyncio.wait_for(asyncio.gather(*asked), 30)
    assert len(answers) == 56
    assert all(answers[::2])


async def test_the_encoding_is_the_first_one_that_both_know(start: Start) -> None:
    chosen = [(await start(encodings=known)).encoding for known in (["utf-32", "utf-8"], ["utf-8"], [])]
    assert chosen == ["utf-32", "utf-8", "utf-16"]


def where(plan: str, word: str) -> lsp.Position:
    """The place behind the only occurrence of a word."""
    assert plan.count(word) == 1
    before = plan[: plan.index(word) + len(word)]
    return lsp.Position(before.count("\n"), len(before.rpartition("\n")[2]))


async def test_questions_about_a_place_are_answered(editor: Editor, plan: str) -> None:
    """Completion, hover, definition, references, highlights, signature and both steps of a new name."""
    client = editor.client
    text = plan.replace("plan small", "let rate = 1e-3\n\nplan small").replace("lr = 1e-3 }", "lr = rate }")
    uri, at = editor.open("place.forge", text), lambda word: where(text, word)
    document = identifier(uri)
    completions = await client.text_document_completion_async(lsp.CompletionParams(document, at("adamw { ")))
    assert isinstance(completions, lsp.CompletionList)
    assert "betas" in [one.label for one in completions.items]
    hover = await client.text_document_hover_async(lsp.HoverParams(document, at("optimi")))
    assert hover is not None
    assert isinstance(hover.contents, lsp.MarkupContent)
    assert hover.contents.value.startswith("**optimizer**")
    hover = await client.text_document_hover_async(lsp.HoverParams(document, at("adamw { l")))
    assert hover is not None
    assert isinstance(hover.contents, lsp.MarkupContent)
    assert "optimizer.lr = 0.001" in hover.contents.value
    found: Any = await client.text_document_definition_async(lsp.DefinitionParams(document, at("lr = ra")))
    assert (found.uri, found.range.start.line) == (uri, 4)
    context = lsp.ReferenceContext(True)
    places = await client.text_document_references_async(lsp.ReferenceParams(context, document, at("lr = ra")))
    assert [one.range.start.line for one in places or ()] == [4, 12]
    marks = await client.text_document_document_highlight_async(lsp.DocumentHighlightParams(document, at("lr = ra")))
    assert len(marks or ()) == 2
    signature = await client.text_document_signature_help_async(lsp.SignatureHelpParams(document, at("lr = rate")))
    assert signature is not None
    assert signature.active_parameter == 0
    prepared: Any = await client.text_document_prepare_rename_async(lsp.PrepareRenameParams(document, at("lr = ra")))
    assert prepared.placeholder == "rate"
    change = await client.text_document_rename_async(lsp.RenameParams(document, at("lr = ra"), "speed"))
    assert change is not None
    assert change.changes is not None
    assert edited(text, change.changes[uri]) == text.replace("rate", "speed")
    with pytest.raises(JsonRpcException, match="a word of the language"):
        await client.text_document_rename_async(lsp.RenameParams(document, at("lr = ra"), "if"))


async def test_what_is_computed_and_what_words_are_is_told(editor: Editor, plan: str) -> None:
    uri = editor.open("told.forge", plan)
    everything = lsp.Range(lsp.Position(0, 0), lsp.Position(99, 0))
    hints = await editor.client.text_document_inlay_hint_async(lsp.InlayHintParams(identifier(uri), everything))
    assert "accumulation 2 · 2 data ranks" in [one.label for one in hints or ()]
    tokens = await editor.client.text_document_semantic_tokens_full_async(lsp.SemanticTokensParams(identifier(uri)))
    assert tokens is not None
    assert len(tokens.data) % 5 == 0
    assert len(tokens.data) > 5 * 50


async def test_a_name_behind_wide_characters_is_found_by_its_place(editor: Editor, plan: str) -> None:
    """C005: rename and hover at the place that the editor counts in UTF-16."""
    text = plan.replace("  budget", '  checkpoint = { path = "𐐀𐐀𐐀𐐀", keep = 3 }\n  budget')
    uri = editor.open("emoji.forge", text)
    at = lsp.Position(11, len('  checkpoint = { path = "",') + 8 + 1)
    hover = await editor.client.text_document_hover_async(lsp.HoverParams(identifier(uri), at))
    assert hover is not None
    assert hover.range is not None
    assert (hover.range.start.character, hover.range.end.character) == (at.character, at.character + 4)
