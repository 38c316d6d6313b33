"""When is a document analysed? A moment after the last change, in one worker thread, and only its newest version.

The event loop never waits for an analysis. One that is overtaken by a change is dropped, before it starts where it can
be; its result is never told to anyone.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count

from attrs import define, field

from forgeplan.analysis import Analysis, analyse
from forgeplan.lsp.snapshot import Snapshot
from forgeplan.lsp.workspace import Documents

PAUSE_SECONDS = 0.01
"""After a change, before the analysis starts: what arrives at once, as text that is replaced does, is analysed once."""
IDLE_SECONDS = 0.2
"""Without a change, before what earlier analyses left in memory is collected: nobody waits then."""
MOST_UNCOLLECTED = 30
"""Analyses after which it is collected at once: each leaves about three megabytes."""
PATIENCE_SECONDS = 3.0
"""How long a request waits for the analysis of its version."""
STACK_BYTES = 64 << 20

log = logging.getLogger(__name__)


@define(eq=False)
class Analyses:
    """Keeps the analysis of every open document up to date. All methods are called in the event loop's thread."""

    documents: Documents
    done: Callable[[Snapshot], None]
    """Called with a document when the analysis of its present version has arrived."""
    _timers: dict[str, asyncio.TimerHandle] = field(factory=dict)
    _running: dict[str, asyncio.Task[None]] = field(factory=dict)
    _generation: dict[str, int] = field(factory=dict)
    """By document: another number after each change of it, or of what it reads; none stands twice."""
    _arrived: dict[str, int] = field(factory=dict)
    _tried: dict[str, int] = field(factory=dict)
    _waiting: dict[str, list[asyncio.Event]] = field(factory=dict)
    _pool: ThreadPoolExecutor | None = None
    _idle: asyncio.TimerHandle | None = None
    _uncollected: int = 0
    _is_closed: bool = False
    """After `close` nothing is analysed any more, and requests are answered from the text."""
    _numbers: Iterator[int] = field(factory=count)

    def changed(self, uri: str) -> None:
        """A document has another text: it and the open documents that read it are out of date."""
        for one in (uri, *self._importers(uri)):
            self._outdated(one)

    def all_changed(self) -> None:
        """A file was opened, closed, saved or changed by another program: whatever may read it is out of date."""
        for one in self.documents.open_documents():
            self._outdated(one.uri)

    def closed(self, uri: str) -> None:
        """A document was closed. Another version of it may be opened later, with any number."""
        self._stop_timer(uri)
        self._wake(uri)
        for table in (self._generation, self._arrived, self._tried):
            table.pop(uri, None)
        self.all_changed()

    def is_current(self, uri: str) -> bool:
        return self._arrived.get(uri) == self._generation.get(uri)

    async def current(self, uri: str) -> Snapshot | None:
        """The document with the analysis of its present version, or without it where that takes too long."""
        if self.documents.is_open(uri) and not self.is_current(uri) and not self._is_closed:
            event = asyncio.Event()
            self._waiting.setdefault(uri, []).append(event)
            if uri in self._timers:
                self._start_timer(uri, 0)
            try:
                await asyncio.wait_for(event.wait(), PATIENCE_SECONDS)
            except TimeoutError:
                log.info("%s: answered before its analysis", uri)
        return self.documents.snapshot(uri)

    def close(self) -> None:
        self._is_closed = True
        self._stop_collecting()
        for uri in list(self._timers):
            self._stop_timer(uri)
        for uri in list(self._waiting):
            self._wake(uri)
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)

    # scheduling -------------------------------------------------------------------------------------------------------

    def _outdated(self, uri: str) -> None:
        if self._uncollected < MOST_UNCOLLECTED:
            self._stop_collecting()
        self._generation[uri] = next(self._numbers)
        self._start_timer(uri, PAUSE_SECONDS)

    def _importers(self, uri: str) -> list[str]:
        """Other open documents whose last analysis read the file."""
        name = self.documents.name_of(uri)
        others = (one for one in self.documents.open_documents() if one.uri != uri)
        return [one.uri for one in others if one.analysis is not None and one.analysis.sources.get(name) is not None]

    def _start_timer(self, uri: str, seconds: float) -> None:
        self._stop_timer(uri)
        if self._is_closed:
            return
        self._timers[uri] = asyncio.get_running_loop().call_later(seconds, self._begin, uri)

    def _stop_timer(self, uri: str) -> None:
        timer = self._timers.pop(uri, None)
        if timer is not None:
            timer.cancel()

    def _begin(self, uri: str) -> None:
        self._timers.pop(uri, None)
        if uri in self._running:
            return  # When it ends, the newer generation is seen.
        self._running[uri] = asyncio.ensure_future(self._analyse(uri))

    async def _analyse(self, uri: str) -> None:
        generation = self._generation.get(uri)
        snapshot = self.documents.snapshot(uri) if self.documents.is_open(uri) else None
        try:
            if snapshot is not None:
                found = await asyncio.get_running_loop().run_in_executor(
                    self._worker(),
                    _analysed,
                    str(self.documents.path_of(uri)),
                    snapshot.text,
                    self.documents.unsaved(),
                )
                self._take(snapshot, generation, found)
        except Exception:
            log.exception("%s could not be analysed: this is a bug of forgeplan", uri)
            if generation is not None and generation == self._generation.get(uri):
                self._tried[uri] = generation  # A failure is not tried again until something changes.
        finally:
            del self._running[uri]
            if self.documents.is_open(uri) and self._tried.get(uri) != self._generation.get(uri):
                if uri not in self._timers:
                    self._start_timer(uri, 0)
            else:
                self._wake(uri)

    def _take(self, snapshot: Snapshot, generation: int | None, found: Analysis | None) -> None:
        """Keep and tell a result, if nothing has changed since it was asked for."""
        uri = snapshot.uri
        if generation is None or generation != self._generation.get(uri):
            return
        self._tried[uri] = generation
        now = self.documents.took(uri, snapshot.version, found) if found is not None else None
        if now is not None:
            self._arrived[uri] = generation
            self._wake(uri)
            self.done(now)
        self._collect_later()

    def _collect_later(self) -> None:
        """Trees and views refer to one another; Python's own collector would look for them while someone waits."""
        if self._is_closed:
            return
        self._uncollected += 1
        self._stop_collecting()
        pause = IDLE_SECONDS if self._uncollected < MOST_UNCOLLECTED else 0
        self._idle = asyncio.get_running_loop().call_later(pause, self._collect)

    def _collect(self) -> None:
        self._idle, self._uncollected = None, 0
        self._worker().submit(gc.collect)

    def _stop_collecting(self) -> None:
        if self._idle is not None:
            self._idle.cancel()

    def _wake(self, uri: str) -> None:
        for event in self._waiting.pop(uri, []):
            event.set()

    def _worker(self) -> ThreadPoolExecutor:
        if self._pool is None:
            before = threading.stack_size(STACK_BYTES)
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="analysis")
            self._pool.submit(int).result()  # The thread starts here, with its stack.
            threading.stack_size(before)
        return self._pool


def _analysed(path: str, text: str, unsaved: dict[str, str]) -> Analysis | None:
    try:
        return analyse(path, text=text, unsaved=unsaved)
    except Exception:
        log.exception("%s could not be analysed: this is a bug of forgeplan", path)
        return None
