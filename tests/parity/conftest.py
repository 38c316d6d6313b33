"""Which ranks do the tests of this folder share?"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from forgeplan.runtime.selftest.bench import Bench
from forgeplan.runtime.selftest.pool import Pools


@pytest.fixture(scope="session")
def bench() -> Iterator[Bench]:
    with Bench() as made:
        yield made


@pytest.fixture(scope="session")
def pools(bench: Bench) -> Pools:
    return bench.pools


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
