"""How is a byte-pair encoding made from text?"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from forgeplan.runtime.data.tokenizer.bpe import END_NAMES

SMALLEST = 257
"""All 256 bytes, so that no text loses a character, and the end of a document."""


def train_bpe(texts: Iterable[str], vocab_size: int, path: Path) -> int:
    """Train a byte-level BPE of at most `vocab_size` ids, write it to `path` as tokenizer.json, return its size.

    The same texts give the same file. Raises ValueError if `vocab_size` is below SMALLEST.
    """
    if vocab_size < SMALLEST:
        raise ValueError(f"a byte-level vocabulary has at least {SMALLEST} ids, not {vocab_size}")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[END_NAMES[0]],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(path.name + ".part")
    unfinished.write_text(tokenizer.to_str(), "utf-8")
    unfinished.replace(path)
    return int(tokenizer.get_vocab_size(with_added_tokens=True))
