"""A server in a process of its own, spoken to as editors do."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from pathlib import Path

import pytest
import pytest_asyncio
from attrs import define, field
from lsprotocol import types as lsp
from pygls.protocol import default_converter
from pytest_lsp import LanguageClient, client_capabilities

PLAN = """forge 1

from "std:clusters" import cpu_host

plan small {
  cluster   = cpu_host { devices_per_node = 2 }
  model     = decoder { layers = 2, dim = 64, heads = 4, vocab = 257, context = 64 tokens }
  tokenizer = byte
  sources   = { py = python_source }
  batch     = { global = 8 sequences, micro = 2 sequences, length = 64 tokens }
  optimizer = adamw { lr = 1e-3 }
  budget    = { steps = 20 steps }
}
"""


@define(eq=False)
class Editor:
    """One client with the folder that it has open."""

    client: LanguageClient
    folder: Path
    published: list[lsp.PublishDiagnosticsParams] = field(factory=list)
    num_refreshes: int = 0
    encoding: str = ""

    def uri(self, name: str) -> str:
        return (self.folder / name).as_uri()

    def open(self, name: str, text: str, version: int = 1) -> str:
        """Open a buffer that need not exist on disk; its URI."""
        item = lsp.TextDocumentItem(self.uri(name), "forge", version, text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        return item.uri

    def change(self, uri: str, text: str, version: int) -> None:
        self.client.text_document_did_change(
            lsp.DidChangeTextDocumentParams(
                lsp.VersionedTextDocumentIdentifier(version, uri),
                [lsp.TextDocumentContentChangeWholeDocument(text)],
            )
        )

    def close(self, uri: str) -> None:
        self.client.text_document_did_close(lsp.DidCloseTextDocumentParams(lsp.TextDocumentIdentifier(uri)))

    def of(self, uri: str) -> list[lsp.PublishDiagnosticsParams]:
        return [one for one in self.published if one.uri == uri]

    async def problems(self, uri: str, version: int = 1, seconds: float = 20) -> list[lsp.Diagnostic]:
        """What was published of a version, as soon as it is."""
        async with asyncio.timeout(seconds):
            while not any(one.version == version for one in self.of(uri)):
                await asyncio.sleep(0.01)
        return list(next(one for one in reversed(self.of(uri)) if one.version == version).diagnostics)


Start = Callable[..., Awaitable[Editor]]


async def started(folder: Path, capabilities: str = "neovim@0.7.0", encodings: Iterable[str] | None = None) -> Editor:
    """A server with its client, which has a folder open."""
    (folder / "forge.toml").touch()
    client = LanguageClient(converter_factory=default_converter)
    editor = Editor(client, folder)

    @client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
    def keep(params: lsp.PublishDiagnosticsParams) -> None:
        editor.published.append(params)

    @client.feature(lsp.WORKSPACE_DIAGNOSTIC_REFRESH)
    @client.feature(lsp.WORKSPACE_INLAY_HINT_REFRESH)
    def refresh(params: None) -> None:
        editor.num_refreshes += 1

    await client.start_io(sys.executable, "-m", "forgeplan", "lsp")
    asked = client_capabilities(capabilities)
    if encodings is not None:
        asked.general = lsp.GeneralClientCapabilities(position_encodings=[*map(lsp.PositionEncodingKind, encodings)])
    folders = [lsp.WorkspaceFolder(folder.as_uri(), "plans")]
    result = await client.initialize_session(lsp.InitializeParams(capabilities=asked, workspace_folders=folders))
    editor.encoding = str(result.capabilities.position_encoding)
    return editor


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def editor(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Editor]:
    """One server for the tests of a file; each opens documents of its own."""
    one = await started(tmp_path_factory.mktemp("plans"))
    yield one
    await one.client.shutdown_session()


@pytest_asyncio.fixture(loop_scope="module")
async def start(tmp_path: Path) -> AsyncIterator[Start]:
    """Start further servers, each with its client; they end with the test."""
    editors: list[Editor] = []

    async def further(capabilities: str = "neovim@0.7.0", encodings: Iterable[str] | None = None) -> Editor:
        editors.append(await started(tmp_path, capabilities, encodings))
        return editors[-1]

    yield further
    for one in editors:
        await one.client.shutdown_session()


@pytest.fixture(scope="session")
def plan() -> str:
    return PLAN
