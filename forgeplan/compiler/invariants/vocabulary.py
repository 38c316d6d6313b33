"""Has every token id a row in the embedding?"""

from __future__ import annotations

from collections.abc import Iterator

from forgeplan.compiler.facts import Facts
from forgeplan.compiler.invariants.registry import Finding, declared, invariant, legal, rewritten
from forgeplan.compiler.wording import count, plural
from forgeplan.diagnostics.data_codes import VOCABULARY
from forgeplan.diagnostics.diagnostic import Safety

LARGEST_ID = {"uint8": 2**8 - 1, "uint16": 2**16 - 1, "uint32": 2**32 - 1, "int32": 2**31 - 1, "int64": 2**63 - 1}


@invariant("FP0415", "a written `pad_vocab` is at least the vocabulary, and a multiple of `mesh.tp`")
def padding_only_adds(facts: Facts) -> Iterator[Finding]:
    padded, vocab, tp = facts["model.pad_vocab"], facts["model.vocab"], facts["mesh.tp"]
    rest = padded.value % tp.value
    if padded.value >= vocab.value and not rest:
        return
    fault = f"cannot be divided over {plural(tp.value, 'tp rank')}: {padded.value:,} % {tp.value:,} = {rest:,}"
    if padded.value < vocab.value:
        fault = f"leaves {count(vocab.value - padded.value)} of {count(vocab.value)} token ids without a row"
    least = -(-vocab.value // tp.value) * tp.value
    yield padding_only_adds.at(
        f"model.pad_vocab = {count(padded.value)} {fault}",
        padded,
        vocab,
        tp,
        legal=(legal(facts, "model.pad_vocab", [least], also=f", with {plural(least - vocab.value, 'row')} added"),),
        help=("or leave it to the compiler: model.pad_vocab = auto",),
        notes=("logits of padding are masked, and an export is unpadded",),
        fixes=rewritten(padded, "auto", "write `auto`", Safety.SAFE),
    )


@invariant("FP0607", "the largest token id fits the integer type of a token file")
def ids_fit_the_dtype(facts: Facts) -> Iterator[Finding]:
    vocab = facts["model.vocab"]
    for name in facts.block("sources"):
        dtype = facts.get(f"sources.{name}.dtype")
        if dtype is None or dtype.value is None or vocab.value - 1 <= LARGEST_ID[dtype.value]:
            continue
        yield ids_fit_the_dtype.at(
            f"`{dtype.value}` holds ids up to {count(LARGEST_ID[dtype.value])}, and the vocabulary goes "
            f"up to {count(vocab.value - 1)}",
            dtype,
            vocab,
            legal=(legal(facts, dtype.path, list(LARGEST_ID)),),
        )


@declared(VOCABULARY)
def ids_fit_the_vocabulary(facts: Facts) -> Iterator[Finding]:
    """What is known without a file: the byte tokenizer, and what a synthetic source makes."""
    vocab = facts["model.vocab"]
    tokenizer = facts.block("tokenizer")
    size = getattr(tokenizer, "num_tokens", None)
    if size is not None and size > vocab.value:
        yield ids_fit_the_vocabulary.at(
            f"the {tokenizer.tag} tokenizer has {count(size)} ids, and the model a vocabulary of {count(vocab.value)}",
            vocab,
            facts["tokenizer"],
            legal=(legal(facts, "model.vocab", [size]),),
        )
    for name, source in facts.block("sources").items():
        states = getattr(source, "states", None)
        size = None if states is None else states + (source.document is not None)
        if size is not None and size > vocab.value:
            yield ids_fit_the_vocabulary.at(
                f"source `{name}` makes {count(size)} different ids, and the model has a vocabulary of "
                f"{count(vocab.value)}",
                facts[f"sources.{name}.states"],
                vocab,
                legal=(legal(facts, "model.vocab", [size]),),
            )
