"""How do bytes become ids?"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from forgeplan.runtime.data.tokenizer.interface import well_formed
from forgeplan.runtime.registry import register
from forgeplan.spec.tokenizer.byte import Byte


class ByteTokenizer:
    """The bytes of UTF-8 are the ids."""

    num_tokens = Byte.num_tokens
    end_of_document: int | None = Byte.end_of_document

    def encode(self, text: str) -> list[int]:
        return list(well_formed(text).encode("utf-8"))

    def encode_documents(self, texts: Iterable[str]) -> Iterator[NDArray[np.uint8]]:
        for text in texts:
            yield np.frombuffer(well_formed(text).encode("utf-8"), np.uint8)

    def decode(self, tokens: Sequence[int]) -> str:
        return bytes(token for token in tokens if token < 256).decode("utf-8", "replace")

    def stream(self) -> ByteStream:
        return ByteStream()

    def fingerprint(self) -> str:
        return "byte"


class ByteStream:
    """Characters as their last byte comes."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def add(self, token: int) -> str:
        return self._decoder.decode(bytes((token,))) if token < 256 else ""

    def end(self) -> str:
        return self._decoder.decode(b"", final=True)


@register.tokenizer("byte", spec=Byte)
def load_byte(spec: Byte, project: Path) -> ByteTokenizer:
    return ByteTokenizer()
