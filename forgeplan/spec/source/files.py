"""Which files can training data come from?"""

from __future__ import annotations

from typing import Any, ClassVar

from attrs import frozen

from forgeplan.spec import types as t
from forgeplan.spec.registry import component
from forgeplan.spec.setting import Change, setting

# A resumed run compares what is in the files, so they may lie elsewhere.
_PATH: dict[str, Any] = {"doc": "a file or a glob", "example": '"data/*.txt"', "change": Change.RESUMABLE}
_SHUFFLE: dict[str, Any] = {"doc": "draw sequences in a seeded order, anew each epoch", "default": "true"}


@component("source", "tokens")
@frozen
class Tokens:
    """Memory-mapped token ids: `.npy` files, or raw `.bin` files of a declared dtype."""

    needs_tokenizer: ClassVar[bool] = False
    path: str = setting(t.PathText(), **_PATH)
    dtype: str | None = setting(
        t.optional(t.OneOf(("uint8", "uint16", "uint32", "int32", "int64"))),
        "integer type of raw files",
        default="none",
    )
    shuffle: bool = setting(t.Bool(), **_SHUFFLE)


@component("source", "text")
@frozen
class TextFiles:
    """Plain text files in UTF-8; each file is a document."""

    needs_tokenizer: ClassVar[bool] = True
    path: str = setting(t.PathText(), **_PATH)
    shuffle: bool = setting(t.Bool(), **_SHUFFLE)


@component("source", "jsonl")
@frozen
class JsonLines:
    """One JSON object a line; each line is a document."""

    needs_tokenizer: ClassVar[bool] = True
    path: str = setting(t.PathText(), **_PATH)
    column: str = setting(t.Text(), "key of the text", default='"text"')
    shuffle: bool = setting(t.Bool(), **_SHUFFLE)
