"""Who answers an editor? Requests come in here and go to the features; analyses go out as problems.

Nothing that goes wrong in a feature ends the server: it is logged, and the answer is empty.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

from lsprotocol import types as lsp
from pygls import uris
from pygls.exceptions import JsonRpcException
from pygls.lsp.server import LanguageServer

from forgeplan.lsp import commands
from forgeplan.lsp.analyses import Analyses
from forgeplan.lsp.features.code_actions import KINDS, code_actions
from forgeplan.lsp.features.completion import completion
from forgeplan.lsp.features.definition import definition
from forgeplan.lsp.features.folding import folding_ranges
from forgeplan.lsp.features.formatting import formatting
from forgeplan.lsp.features.hover import hover
from forgeplan.lsp.features.inlay_hints import inlay_hints
from forgeplan.lsp.features.lenses import code_lenses
from forgeplan.lsp.features.links import document_links
from forgeplan.lsp.features.references import highlights, references
from forgeplan.lsp.features.rename import CannotRename, prepare_rename, rename
from forgeplan.lsp.features.selection import selection_ranges
from forgeplan.lsp.features.semantic_tokens import LEGEND, semantic_tokens
from forgeplan.lsp.features.signature_help import signature_help
from forgeplan.lsp.features.symbols import document_symbols, workspace_symbols
from forgeplan.lsp.problems import problems
from forgeplan.lsp.snapshot import Snapshot
from forgeplan.lsp.workspace import Documents

log = logging.getLogger(__name__)

T = TypeVar("T")


class ForgeServer(LanguageServer):
    """The language server of plan files. Texts are sent whole, as plans are small."""

    def __init__(self, version: str) -> None:
        super().__init__("forgeplan", version, text_document_sync_kind=lsp.TextDocumentSyncKind.Full)
        self.documents = Documents()
        self.analyses = Analyses(self.documents, self.tell)

    def tell(self, snapshot: Snapshot) -> None:
        """Send the problems of a document, or ask a client that fetches them to do so."""
        if not self.pulls:
            self.text_document_publish_diagnostics(
                lsp.PublishDiagnosticsParams(snapshot.uri, problems(snapshot, self.documents), snapshot.version)
            )
        workspace = self.client_capabilities.workspace
        if self.pulls and workspace and workspace.diagnostics and workspace.diagnostics.refresh_support:
            self.workspace_diagnostic_refresh(None)
        if workspace and workspace.inlay_hint and workspace.inlay_hint.refresh_support:
            self.workspace_inlay_hint_refresh(None)

    @property
    def pulls(self) -> bool:
        """Whether the client asks for problems: it would show those that are pushed a second time."""
        document = self.client_capabilities.text_document
        return document is not None and document.diagnostic is not None

    @property
    def takes_snippets(self) -> bool:
        document = self.client_capabilities.text_document
        item = document.completion.completion_item if document and document.completion else None
        return bool(item and item.snippet_support)

    @property
    def has_grammar(self) -> bool:
        """Whether the client lays our kinds of words over those of a grammar."""
        document = self.client_capabilities.text_document
        tokens = document.semantic_tokens if document else None
        return bool(tokens and tokens.augments_syntax_tokens)

    async def current(self, uri: str) -> Snapshot | None:
        """A document with the analysis of its present version."""
        return await self.analyses.current(uri)


def make_server(version: str) -> ForgeServer:
    """A server with all its features, not started."""
    server = ForgeServer(version)
    _lifecycle(server)
    _whole_documents(server)
    _of_places(server)
    _problems(server)
    _commands(server)
    return server


def answered(fallback: Any) -> Callable[[Callable[..., Awaitable[T]]], Callable[..., Awaitable[T]]]:
    """A handler that answers with `fallback` where it fails."""

    def wrap(handler: Callable[..., Awaitable[T]]) -> Callable[..., Awaitable[T]]:
        @functools.wraps(handler)
        async def safe(ls: ForgeServer, params: Any) -> Any:
            try:
                return await handler(ls, params)
            except Exception:
                log.exception("%s failed: this is a bug of forgeplan", handler.__name__)
                return fallback

        return safe

    return wrap


def _lifecycle(server: ForgeServer) -> None:
    @server.feature(lsp.INITIALIZE)
    def initialize(ls: ForgeServer, params: lsp.InitializeParams) -> None:
        ls.documents.encoding = str(getattr(ls.workspace.position_encoding, "value", ls.workspace.position_encoding))
        folders = [folder.uri for folder in params.workspace_folders or ()] or [params.root_uri or ""]
        ls.documents.folders = [Path(path) for uri in folders if uri and (path := uris.to_fs_path(uri))]

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS)
    def folders_changed(ls: ForgeServer, params: lsp.DidChangeWorkspaceFoldersParams) -> None:
        gone = {uris.to_fs_path(folder.uri) for folder in params.event.removed}
        new = [Path(path) for folder in params.event.added if (path := uris.to_fs_path(folder.uri))]
        ls.documents.folders = [path for path in ls.documents.folders if str(path) not in gone] + new

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(ls: ForgeServer, params: lsp.DidOpenTextDocumentParams) -> None:
        document = params.text_document
        ls.documents.put(document.uri, document.version, document.text)
        ls.analyses.all_changed()

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def changed(ls: ForgeServer, params: lsp.DidChangeTextDocumentParams) -> None:
        document = params.text_document
        ls.documents.put(document.uri, document.version, ls.workspace.get_text_document(document.uri).source)
        ls.analyses.changed(document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(ls: ForgeServer, params: lsp.DidCloseTextDocumentParams) -> None:
        uri = params.text_document.uri
        ls.documents.close(uri)
        ls.analyses.closed(uri)
        if not ls.pulls:
            ls.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, []))

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def saved(ls: ForgeServer, params: lsp.DidSaveTextDocumentParams) -> None:
        ls.analyses.all_changed()

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def files_changed(ls: ForgeServer, params: lsp.DidChangeWatchedFilesParams) -> None:
        ls.analyses.all_changed()

    @server.feature(lsp.SHUTDOWN)
    def shut_down(ls: ForgeServer, params: None) -> None:
        ls.analyses.close()


def _problems(server: ForgeServer) -> None:
    @server.feature(
        lsp.TEXT_DOCUMENT_DIAGNOSTIC,
        lsp.DiagnosticOptions(inter_file_dependencies=True, workspace_diagnostics=False, identifier="forgeplan"),
    )
    @answered(lsp.RelatedFullDocumentDiagnosticReport(items=[]))
    async def diagnostic(ls: ForgeServer, params: lsp.DocumentDiagnosticParams) -> Any:
        snapshot = await ls.current(params.text_document.uri)
        items = problems(snapshot, ls.documents) if snapshot else []
        return lsp.RelatedFullDocumentDiagnosticReport(items=items)

    @server.feature(lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions(code_action_kinds=list(KINDS)))
    @answered(None)
    async def actions(ls: ForgeServer, params: lsp.CodeActionParams) -> Any:
        snapshot = await ls.current(params.text_document.uri)
        if snapshot is None:
            return None
        start, end = snapshot.offset(params.range.start), snapshot.offset(params.range.end)
        return code_actions(snapshot, start, end, ls.documents, params.context.only)


def _whole_documents(server: ForgeServer) -> None:
    """Features that need no more than the text."""

    def of_text(method: str, answer: Callable[[Snapshot, ForgeServer, Any], Any]) -> None:
        @server.feature(method)
        @answered(None)
        async def handler(ls: ForgeServer, params: Any) -> Any:
            snapshot = ls.documents.snapshot(params.text_document.uri)
            return None if snapshot is None else answer(snapshot, ls, params)

    of_text(lsp.TEXT_DOCUMENT_FORMATTING, lambda snapshot, ls, params: formatting(snapshot))
    of_text(lsp.TEXT_DOCUMENT_DOCUMENT_SYMBOL, lambda snapshot, ls, params: document_symbols(snapshot))
    of_text(lsp.TEXT_DOCUMENT_FOLDING_RANGE, lambda snapshot, ls, params: folding_ranges(snapshot))
    of_text(lsp.TEXT_DOCUMENT_DOCUMENT_LINK, lambda snapshot, ls, params: document_links(snapshot, ls.documents))
    of_text(lsp.TEXT_DOCUMENT_CODE_LENS, lambda snapshot, ls, params: code_lenses(snapshot))
    of_text(
        lsp.TEXT_DOCUMENT_SELECTION_RANGE,
        lambda snapshot, ls, params: selection_ranges(snapshot, map(snapshot.offset, params.positions)),
    )

    @server.feature(lsp.WORKSPACE_SYMBOL)
    @answered(None)
    async def symbols(ls: ForgeServer, params: lsp.WorkspaceSymbolParams) -> Any:
        return workspace_symbols(params.query, ls.documents)


def _of_places(server: ForgeServer) -> None:
    """Features that are about one place of a text."""

    def at_place(method: str, answer: Callable[[Snapshot, int, Documents, Any], Any], options: Any = None) -> None:
        @server.feature(method, options)
        @answered(None)
        async def handler(ls: ForgeServer, params: Any) -> Any:
            snapshot = ls.documents.snapshot(params.text_document.uri)
            return (
                None if snapshot is None else answer(snapshot, snapshot.offset(params.position), ls.documents, params)
            )

    at_place(
        lsp.TEXT_DOCUMENT_COMPLETION,
        lambda snapshot, at, workspace, params: completion(snapshot, at, workspace, server.takes_snippets),
        lsp.CompletionOptions(trigger_characters=[".", "=", " ", '"', "{"]),
    )
    at_place(
        lsp.TEXT_DOCUMENT_SIGNATURE_HELP,
        lambda snapshot, at, workspace, params: signature_help(snapshot, at, workspace),
        lsp.SignatureHelpOptions(trigger_characters=["{", "(", ","], retrigger_characters=[","]),
    )
    at_place(lsp.TEXT_DOCUMENT_DEFINITION, lambda snapshot, at, workspace, params: definition(snapshot, at, workspace))
    at_place(
        lsp.TEXT_DOCUMENT_REFERENCES,
        lambda snapshot, at, workspace, params: references(snapshot, at, workspace, params.context.include_declaration),
    )
    at_place(
        lsp.TEXT_DOCUMENT_DOCUMENT_HIGHLIGHT,
        lambda snapshot, at, workspace, params: highlights(snapshot, at, workspace),
    )
    at_place(
        lsp.TEXT_DOCUMENT_PREPARE_RENAME,
        lambda snapshot, at, workspace, params: prepare_rename(snapshot, at, workspace),
    )

    @server.feature(lsp.TEXT_DOCUMENT_RENAME, lsp.RenameOptions(prepare_provider=True))
    async def rename_(ls: ForgeServer, params: lsp.RenameParams) -> Any:
        snapshot = ls.documents.snapshot(params.text_document.uri)
        if snapshot is None:
            return None
        try:
            return rename(snapshot, snapshot.offset(params.position), params.new_name, ls.documents)
        except CannotRename as reason:
            raise JsonRpcException(str(reason), code=-32803) from None  # RequestFailed of the protocol

    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    @answered(None)
    async def hover_(ls: ForgeServer, params: lsp.HoverParams) -> Any:
        snapshot = await ls.current(params.text_document.uri)
        return None if snapshot is None else hover(snapshot, snapshot.offset(params.position), ls.documents)

    @server.feature(lsp.TEXT_DOCUMENT_INLAY_HINT)
    @answered(None)
    async def hints(ls: ForgeServer, params: lsp.InlayHintParams) -> Any:
        snapshot = await ls.current(params.text_document.uri)
        if snapshot is None:
            return None
        return inlay_hints(snapshot, snapshot.offset(params.range.start), snapshot.offset(params.range.end))

    @server.feature(lsp.TEXT_DOCUMENT_SEMANTIC_TOKENS_FULL, LEGEND)
    @answered(None)
    async def tokens(ls: ForgeServer, params: lsp.SemanticTokensParams) -> Any:
        snapshot = ls.documents.snapshot(params.text_document.uri)
        return None if snapshot is None else semantic_tokens(snapshot, ls.has_grammar)


def _commands(server: ForgeServer) -> None:
    def of_plan(name: str, answer: Callable[[Snapshot, str], str]) -> None:
        @server.command(name)
        async def handler(ls: ForgeServer, uri: str, plan: str = "") -> str:
            snapshot = await ls.current(uri)
            return f"{uri} is not open" if snapshot is None else answer(snapshot, plan)

    of_plan("forgeplan.compile", commands.compiled)
    of_plan("forgeplan.explain", commands.explained)
