"""How is a part taken from data that has no documents, only numbered windows?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from forgeplan.runtime.data.hashing import I64
from forgeplan.runtime.data.samples import Samples
from forgeplan.runtime.data.split import Part, WindowsOf


class WindowSamples(Samples):
    """The windows of `whole` that belong to a part.

    Where windows are neighbours in a file (`share_edges`), the last label of one is the first token of the next: it is
    foreign where the next belongs to another part, so that no part learns a token of another.
    """

    def __init__(self, whole: Samples, part: Part, *, share_edges: bool) -> None:
        self._whole = whole
        self._windows = WindowsOf(part, whole.num_samples)
        self._share_edges = share_edges
        self.num_samples = self._windows.num

    def read(self, numbers: I64, out: I64) -> None:
        self._whole.read(self._windows.windows(numbers), out)

    def foreign_labels(self, numbers: I64) -> NDArray[np.bool_]:
        if not self._share_edges:
            return super().foreign_labels(numbers)
        return ~self._windows.contain(self._windows.windows(numbers) + 1)

    def place(self, number: int, offset: int) -> str:
        return self._whole.place(int(self._windows.windows(np.array([number]))[0]), offset)
