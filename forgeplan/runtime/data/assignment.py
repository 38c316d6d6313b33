"""Which samples does a data rank get in a step?

The order of training is one line of samples, whatever the number of ranks. A step takes the next accumulation · D ·
micro of them; its microbatch a on data rank r is the (a · D + r)-th group of `micro`. A run that goes on with other
ranks, another accumulation or another microbatch size starts where the last step ended: one integer says where.
"""

from __future__ import annotations

import numpy as np
from attrs import frozen

from forgeplan.runtime.data.hashing import I64


@frozen
class Assignment:
    """How the samples of a step are dealt to data ranks and microbatches."""

    accumulation: int
    data_ranks: int
    micro: int

    @property
    def samples_per_step(self) -> int:
        return self.accumulation * self.data_ranks * self.micro

    def samples(self, first_sample: int, data_rank: int) -> I64:
        """Global sample indices of one rank in the step that starts at `first_sample`; shape (accumulation, micro)."""
        groups = np.arange(self.accumulation, dtype=np.int64) * self.data_ranks + data_rank
        return first_sample + groups[:, None] * self.micro + np.arange(self.micro, dtype=np.int64)
