"""What can a tokenizer do?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from forgeplan.runtime.registry import implementation


class TextStream(Protocol):
    """Text from ids as they come; half characters are held back until the rest is there."""

    def add(self, token: int) -> str:
        """The text that is complete with this id, perhaps none."""
        ...

    def end(self) -> str:
        """What was held back; a half character is shown as U+FFFD."""
        ...


class Tokenizer(Protocol):
    """Text to ids and back. No text is ever read as a special token: only the loader writes those."""

    num_tokens: int
    """Ids are 0 … num_tokens − 1, added tokens included."""
    end_of_document: int | None

    def encode(self, text: str) -> list[int]:
        """Ids of a text, without end of document."""
        ...

    def encode_documents(self, texts: Iterable[str]) -> Iterator[NDArray[np.integer[Any]]]:
        """Ids of each text in turn, without end of document."""
        ...

    def decode(self, tokens: Sequence[int]) -> str:
        """Text of ids; special tokens have none."""
        ...

    def stream(self) -> TextStream: ...

    def fingerprint(self) -> str:
        """Equal for tokenizers that give every text the same ids."""
        ...


def load_tokenizer(spec: Any, project: Path) -> Tokenizer:
    """The tokenizer of a plan. Raises Refusal if its file is missing or unreadable."""
    tokenizer: Tokenizer = implementation("tokenizer", spec)(spec, project)
    return tokenizer


def well_formed(text: str) -> str:
    """The text with "?" for lone surrogates, which JSON and command lines can hold, and UTF-8 cannot."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
