"""Is it known how the bytes of a source become token ids?"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from forgeplan.compiler.changes import Change
from forgeplan.compiler.facts import Facts
from forgeplan.compiler.invariants.registry import Finding, invariant, legal
from forgeplan.compiler.wording import count, listing
from forgeplan.diagnostics.diagnostic import Label

HOLDS = (("uint16", 2**16), ("uint32", 2**32))
"""Integer types that token files commonly have, with the vocabulary each can hold."""


@invariant("FP0605", "a token file without a header has a written `dtype`")
def raw_files_have_a_dtype(facts: Facts) -> Iterator[Finding]:
    for name, source in facts.block("sources").items():
        if source.tag != "tokens" or source.dtype is not None:
            continue
        extension = PurePosixPath(source.path).suffix
        if extension in ("", ".npy") or any(wildcard in extension for wildcard in "*?["):
            continue
        yield raw_files_have_a_dtype.at(
            f"`{extension}` files have no header that says which integers they hold, and its size does not tell",
            facts[f"sources.{name}.path"],
            help=tuple(f"dtype = {dtype}, for a vocabulary of up to {count(size)}" for dtype, size in HOLDS),
            changes=[
                Change(f"sources.{name}.dtype", dtype) for dtype, size in HOLDS if facts["model.vocab"].value <= size
            ],
        )


@invariant("FP0608", "a tokenizer is named where text becomes ids, or packed token files need their end of document")
def text_has_a_tokenizer(facts: Facts) -> Iterator[Finding]:
    tokenizer, pack = facts.block("tokenizer"), facts["batch.pack"]
    if tokenizer is not None or facts.is_damaged:
        return
    sources = facts.block("sources")
    texts = [name for name, source in sources.items() if source.needs_tokenizer]
    files = [name for name, source in sources.items() if pack.value and source.tag == "tokens"]
    for names, why in (
        (texts, "is text, and only a tokenizer makes ids of it"),
        (files, "is packed, and only a tokenizer knows the id that ends a document"),
    ):
        if names:
            place = facts.place(f"sources.{names[0]}")
            yield text_has_a_tokenizer.at(
                f"source `{listing(names, '` and `')}` {why}",
                Label(place, "needs a tokenizer"),
                facts["tokenizer"],
                *((pack,) if names is files else ()),
                legal=(legal(facts, "batch.pack", [False]),) if names is files else (),
                help=("tokenizer = byte {}", 'or a trained one: tokenizer = bpe { path = "tokenizer.json" }'),
            )
