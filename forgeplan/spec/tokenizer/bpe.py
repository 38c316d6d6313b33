"""What are ids when a byte-pair encoding was trained?"""

from __future__ import annotations

from attrs import frozen

from forgeplan.spec import types as t
from forgeplan.spec.registry import component
from forgeplan.spec.setting import Change, setting


@component("tokenizer", "bpe")
@frozen
class Bpe:
    """Byte-level byte-pair encoding, in the `tokenizer.json` format of the tokenizers library."""

    path: str = setting(t.PathText(), "a tokenizer.json file", change=Change.RESUMABLE, example='"tokenizer.json"')
