"""Which ranks do the tests of this folder share?"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from tests.parity.pool import Pools


@pytest.fixture(scope="session")
def pools() -> Iterator[Pools]:
    made = Pools()
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
