"""How long does an editor wait? `python -m benchmarks.editor`

Method: a server in a process of its own and a client that speaks the protocol to it. A plan of 300 lines is changed 200
times; each time the client waits for the diagnostics of that version, and then for a completion in the middle of the
plan. Times are wall time at the client, from the message that is sent to the one that comes; the server pauses 10 ms
after a change before it analyses. Memory is what the server holds (resident set) after 200 and after 2,000 changes.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

from benchmarks.compilation import PLANS

LINES = 300
EDITS, FIRST, LAST = 200, 200, 2_000


def three_hundred_lines() -> str:
    """A family of eight plans that extend dense_70b, with profiles, evaluations, checks and tests, 300 lines in all."""
    lines = (PLANS / "dense_70b.forge").read_text(encoding="utf-8").splitlines()
    for number in range(1, 8):
        lines += [
            "",
            f"## Variant {number}: another rate, another batch, other places to save to.",
            f"plan variant_{number} extends dense_70b {{",
            *_BODY.format(number=number).splitlines(),
            "}",
            "",
            f'test "variant {number} is the same model" for variant_{number} {{',
            "  expect model.params > 60B",
            f"  expect seed == {number}",
            "}",
        ]
    while len(lines) < LINES:
        lines.append(f"# {len(lines)}")
    return "\n".join(lines[:LINES]) + "\n"


_BODY = """\
  let between = {number}00 steps
  seed      = {number}
  optimizer = adamw {{
    lr           = {number}e-5
    betas        = [0.9, 0.95]
    weight_decay = 0.1
  }}
  schedule = cosine {{
    warmup = 3%
    floor  = 10%
  }}
  batch.accumulation = 8
  checkpoint = {{
    every = between
    keep  = 2
  }}
  guard = {{
    clip      = 1.0
    nonfinite = skip {{ budget = 10 steps }}
  }}
  metrics = {{ every = 10 steps }}

  # The first steps alone.
  profile smoke {{
    budget = {{ steps = 10 steps }}
  }}"""


class Session:
    """A client with one open document."""

    def __init__(self) -> None:
        self.client = LanguageClient("benchmark", "1")
        self.arrived: dict[int, float] = {}
        self.waiting: dict[int, asyncio.Event] = {}

        @self.client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def published(params: lsp.PublishDiagnosticsParams) -> None:
            version = params.version or 0
            self.arrived[version] = time.perf_counter()
            if version in self.waiting:
                self.waiting[version].set()

    async def start(self, folder: Path, text: str) -> None:
        await self.client.start_io(sys.executable, "-m", "forgeplan", "lsp")
        await self.client.initialize_async(
            lsp.InitializeParams(lsp.ClientCapabilities(), root_uri=folder.as_uri(), process_id=None)
        )
        self.client.initialized(lsp.InitializedParams())
        self.uri = (folder / "a.forge").as_uri()
        self.waiting[1] = asyncio.Event()
        item = lsp.TextDocumentItem(self.uri, "forge", 1, text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        await self.waiting[1].wait()

    async def change(self, version: int, text: str) -> float:
        """Seconds until the diagnostics of this version."""
        event = self.waiting[version] = asyncio.Event()
        start = time.perf_counter()
        document = lsp.VersionedTextDocumentIdentifier(version, self.uri)
        whole = lsp.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(document, [whole]))
        await asyncio.wait_for(event.wait(), 60)
        del self.waiting[version]
        return self.arrived.pop(version) - start

    async def complete(self, line: int, character: int) -> float:
        """Seconds until completions."""
        start = time.perf_counter()
        place = lsp.Position(line, character)
        params = lsp.CompletionParams(lsp.TextDocumentIdentifier(self.uri), place)
        found: Any = await self.client.text_document_completion_async(params)
        if not found or not found.items:
            raise RuntimeError("no completion came")
        return time.perf_counter() - start

    def resident_bytes(self) -> int | None:
        process = getattr(self.client, "_server", None)
        try:
            status = Path(f"/proc/{process.pid}/status").read_text(encoding="ascii") if process else ""
        except OSError:
            return None
        row = next((line for line in status.splitlines() if line.startswith("VmRSS:")), None)
        return int(row.split()[1]) * 1024 if row else None


def edited(text: str, version: int) -> str:
    """The text with one more character on one of its lines, another for each version."""
    lines = text.splitlines()
    lines.insert(20 + version % 200, f"# {version}")
    return "\n".join(lines[:LINES]) + "\n"


def percentile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def _row(name: str, seconds: Sequence[float], wanted: str) -> str:
    half, most = (1e3 * percentile(seconds, share) for share in (0.5, 0.95))
    return f"{name:<34} median {half:6.1f} ms   p95 {most:6.1f} ms   ({wanted})"


async def measure() -> None:
    text = three_hundred_lines()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "forge.toml").touch()
        session = Session()
        await session.start(folder, text)
        line = next(i for i, row in enumerate(text.splitlines()) if "seed " in row)
        changes, completions, memory = [], [], {}
        for version in range(2, LAST + 2):
            seconds = await session.change(version, edited(text, version))
            if version < EDITS + 2:
                changes.append(seconds)
                completions.append(await session.complete(line, 2))
            if version - 1 in (FIRST, LAST):
                memory[version - 1] = session.resident_bytes()
        print(_row(f"change of {len(text.splitlines())} lines → diagnostics", changes, "wanted: p95 ≤ 100 ms"))
        print(_row("completion", completions, "wanted: p95 ≤ 50 ms"))
        before, after = memory[FIRST], memory[LAST]
        if before is not None and after is not None:
            grown = (after - before) / 2**20
            print(f"memory after {FIRST} and {LAST:,} changes  {before / 2**20:.1f} → {after / 2**20:.1f} MiB, "
                  f"{grown:+.1f} MiB   (wanted: ≤ 10)")  # fmt: skip
        await session.client.shutdown_async(None)
        session.client.exit(None)


if __name__ == "__main__":
    asyncio.run(measure())
