"""What does a source give to the loader, whatever it is made of?"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from attrs import frozen
from numpy.typing import NDArray

from forgeplan.runtime.data.hashing import I64
from forgeplan.runtime.data.split import Part
from forgeplan.runtime.data.tokenizer.interface import Tokenizer


@frozen
class Setting:
    """Where a source is opened: all that it may depend on besides its own fields."""

    name: str
    """The source's name in the plan."""
    project: Path
    length: int
    seed: int
    tokenizer: Tokenizer | None
    caches: tuple[Path, ...]
    """Folders for tokenised text, the preferred one first."""

    def shown(self, path: Path) -> str:
        """A path as the plan's author knows it."""
        return path.relative_to(self.project).as_posix() if path.is_relative_to(self.project) else str(path)


class Samples(ABC):
    """Sequences of length + 1 tokens, by number: the last token is only a label."""

    num_samples: int | None
    """How many there are; None is endless."""

    @abstractmethod
    def read(self, numbers: I64, out: I64) -> None:
        """Write sequence numbers[i] to out[i]; `out` has shape (len(numbers), length + 1)."""

    def foreign_labels(self, numbers: I64) -> NDArray[np.bool_]:
        """Whether the last label of each sequence is a token of another part of the source."""
        return np.zeros(len(numbers), np.bool_)

    @abstractmethod
    def place(self, number: int, offset: int) -> str:
        """Where a token stands, for a person: file and offset."""


class Source(ABC):
    """One opened source of a plan."""

    shuffle: bool
    end_of_document: int | None
    files: tuple[Path, ...] = ()
    """The files that are read, where the plan names them."""

    @abstractmethod
    def part(self, part: Part) -> Samples:
        """The sequences of a part of the source."""

    @abstractmethod
    def facts(self) -> Mapping[str, str]:
        """What the content is, item by item: equal facts mean equal sequences."""

    @abstractmethod
    def describe(self) -> str:
        """One line for a person: what there is, and how much."""
