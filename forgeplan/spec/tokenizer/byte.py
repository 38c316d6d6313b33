"""What are ids when there is no vocabulary to learn?"""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from forgeplan.spec.registry import component


@component("tokenizer", "byte")
@frozen
class Byte:
    """The 256 byte values of UTF-8, and 256 as end of document."""

    num_tokens: ClassVar[int] = 257
    end_of_document: ClassVar[int] = 256
