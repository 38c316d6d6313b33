"""How does text become sequences? Documents are joined in their order, and the row is cut every `length` tokens."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from forgeplan.diagnostics.counted import plural
from forgeplan.diagnostics.refusal import InternalError
from forgeplan.runtime.data.cache import Tokenised, tokenised
from forgeplan.runtime.data.hashing import I64
from forgeplan.runtime.data.samples import Samples, Setting, Source
from forgeplan.runtime.data.split import Part, documents_of


class DocumentSource(Source):
    """A source of texts, tokenised once.

    `digest` is the hash of all of them; `origin` says for a person where they come from.
    """

    def __init__(
        self,
        texts: Callable[[], Iterator[str]],
        digest: str,
        origin: str,
        setting: Setting,
        *,
        shuffle: bool,
        files: tuple[Path, ...] = (),
    ) -> None:
        if setting.tokenizer is None:
            raise InternalError(f"source {setting.name!r} is text, and the plan has no tokenizer")
        self.shuffle = shuffle
        self.files = files
        self.end_of_document = setting.tokenizer.end_of_document
        self._content = tokenised(texts, digest, setting.tokenizer, setting.caches)
        self._digest = digest
        self._origin = origin
        self._setting = setting

    def part(self, part: Part) -> DocumentSamples:
        return DocumentSamples(self._content, documents_of(part, self._content.hashes), self._setting)

    def facts(self) -> Mapping[str, str]:
        return {"texts": self._digest}

    def describe(self) -> str:
        num_documents, num_tokens = len(self._content.ends), len(self._content.tokens)
        return f"{plural(num_tokens, 'token')} in {plural(num_documents, 'document')}, {self._origin}"


class DocumentSamples(Samples):
    """Windows over the chosen documents in a row; neighbouring documents are read as one run."""

    def __init__(self, content: Tokenised, chosen: NDArray[np.bool_], setting: Setting) -> None:
        ends = content.ends
        edges = np.flatnonzero(np.diff(np.concatenate(([False], chosen, [False])).astype(np.int8)))
        bounds = np.concatenate(([0], ends))
        starts, stops = bounds[edges[::2]], bounds[edges[1::2]]
        self._tokens = content.tokens
        self._starts = starts
        self._before = np.concatenate(([0], np.cumsum(stops - starts)))
        self._length = setting.length
        self._name = setting.name
        self.num_documents = int(chosen.sum())
        self.num_tokens = int(self._before[-1])
        self.num_samples = max(0, (self.num_tokens - 1) // setting.length)

    def read(self, numbers: I64, out: I64) -> None:
        tokens, starts, before = self._tokens, self._starts, self._before
        width = self._length + 1
        firsts = numbers * self._length
        runs = np.searchsorted(before, firsts, "right") - 1
        for row, first, run in zip(out, firsts.tolist(), runs.tolist(), strict=True):
            done = 0
            while done < width:
                at = starts[run] + first + done - before[run]
                take = min(width - done, int(before[run + 1]) - first - done)
                row[done : done + take] = tokens[at : at + take]
                done += take
                run += 1

    def place(self, number: int, offset: int) -> str:
        return f"source `{self._name}`, token {number * self._length + offset:,}"
