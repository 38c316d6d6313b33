"""How does text become ids with a byte-pair encoding that was trained before?"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer as Library
from tokenizers.decoders import DecodeStream

from forgeplan.diagnostics.data_codes import FILES
from forgeplan.diagnostics.refusal import Refusal
from forgeplan.runtime.data.tokenizer.interface import well_formed
from forgeplan.runtime.registry import register
from forgeplan.spec.tokenizer.bpe import Bpe

END_NAMES = ("<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "<|end|>")
"""Special tokens that end a document, where no tokenizer_config.json says which one does."""

PIECE = 4096
BATCH = 256
"""Texts are encoded in pieces of about PIECE characters, BATCH at a time: twice as fast as whole files."""

_CUT = re.compile(r"(?<=\S\n)(?=\S)")
"""Between a line and the next one that is not indented, a byte-level split cuts whatever is around it."""


class BpeTokenizer:
    """A `tokenizer.json` of the tokenizers library."""

    def __init__(self, library: Library, fingerprint: str, end_name: str | None) -> None:
        library.encode_special_tokens = True
        # What a file says about batches of a fixed length, or about chance, is not meant for text to train on.
        library.no_truncation()
        library.no_padding()
        library.model.dropout = None
        self._library = library
        self._fingerprint = fingerprint
        self._may_cut = _splits_at_lines(json.loads(library.to_str()))
        self.num_tokens: int = max(library.get_vocab(with_added_tokens=True).values()) + 1
        self.end_of_document: int | None = None if end_name is None else library.token_to_id(end_name)

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self._library.encode(well_formed(text), add_special_tokens=False).ids
        return ids

    def encode_documents(self, texts: Iterable[str]) -> Iterator[NDArray[np.uint32]]:
        waiting: list[tuple[int, str]] = []
        for number, text in enumerate(texts):
            waiting += [(number, piece) for piece in (_pieces(text) if self._may_cut else (text,))]
            if len(waiting) >= BATCH:
                yield from self._encode_batch(waiting)
                waiting = []
        if waiting:
            yield from self._encode_batch(waiting)

    def _encode_batch(self, pieces: list[tuple[int, str]]) -> Iterator[NDArray[np.uint32]]:
        encodings = self._library.encode_batch_fast([well_formed(text) for _, text in pieces], add_special_tokens=False)
        of_text: dict[int, list[int]] = {}
        for (number, _), encoding in zip(pieces, encodings, strict=True):
            of_text.setdefault(number, []).extend(encoding.ids)
        for ids in of_text.values():
            yield np.array(ids, np.uint32)

    def decode(self, tokens: Sequence[int]) -> str:
        text: str = self._library.decode([t for t in tokens if t < self.num_tokens], skip_special_tokens=True)
        return text

    def stream(self) -> BpeStream:
        return BpeStream(self)

    def fingerprint(self) -> str:
        return self._fingerprint


class BpeStream:
    """Characters as their last byte comes."""

    def __init__(self, tokenizer: BpeTokenizer) -> None:
        self._tokenizer = tokenizer
        self._stream = DecodeStream(skip_special_tokens=True)
        self._tokens: list[int] = []
        self._num_shown = 0

    def add(self, token: int) -> str:
        if token >= self._tokenizer.num_tokens:
            return ""
        self._tokens.append(token)
        text = self._stream.step(self._tokenizer._library, token) or ""
        self._num_shown += len(text)
        return text

    def end(self) -> str:
        return self._tokenizer.decode(self._tokens)[self._num_shown :]


def _pieces(text: str) -> Iterator[str]:
    """The text in pieces of at least PIECE characters, cut where pre-tokens are cut anyway."""
    start = 0
    while len(text) - start > PIECE:
        cut = _CUT.search(text, start + PIECE)
        if cut is None:
            break
        yield text[start : cut.start()]
        start = cut.start()
    yield text[start:]


def _splits_at_lines(description: dict) -> bool:
    split = description.get("pre_tokenizer") or {}
    plain = split.get("type") == "ByteLevel" and not split.get("add_prefix_space") and split.get("use_regex", True)
    unmatched = all(token["special"] for token in description.get("added_tokens") or ())
    return bool(plain) and unmatched and description.get("normalizer") is None


@register.tokenizer("bpe", spec=Bpe)
def load_bpe(spec: Bpe, project: Path) -> BpeTokenizer:
    path = project / spec.path
    try:
        content = path.read_bytes()
    except OSError as error:
        raise Refusal(
            FILES,
            f"the tokenizer {spec.path} cannot be read: {error.strerror}",
            "train one with `forgeplan.runtime.data.tokenizer.train.train_bpe`, or name an existing tokenizer.json",
        ) from error
    try:
        library = Library.from_buffer(content)
    except Exception as error:  # the library raises nothing more specific
        raise Refusal(FILES, f"{spec.path} is not a tokenizer.json: {error}") from error
    fingerprint = "bpe " + blake2b(content, digest_size=16).hexdigest()
    return BpeTokenizer(library, fingerprint, _end_name(library, path.with_name("tokenizer_config.json")))


def _end_name(library: Library, config: Path) -> str | None:
    """The token that ends a document: `eos_token` of tokenizer_config.json, else a special token with a known name."""
    try:
        named = json.loads(config.read_text("utf-8")).get("eos_token")
    except (OSError, ValueError, AttributeError):
        named = None
    if isinstance(named, dict):
        named = named.get("content")
    if isinstance(named, str) and library.token_to_id(named) is not None:
        return named
    special = {token.content for token in library.get_added_tokens_decoder().values() if token.special}
    return next((name for name in END_NAMES if name in special), None)
