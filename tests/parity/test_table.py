"""Does every layout train what one process trains? The rows are those of `forgeplan selftest`, in `selftest/rows/`."""

from __future__ import annotations

import pytest

from forgeplan.runtime.selftest.bench import Bench
from forgeplan.runtime.selftest.row import Row
from forgeplan.runtime.selftest.table import TABLE


@pytest.mark.parametrize("row", TABLE, ids=str)
def test_trains_what_one_process_trains(row: Row, bench: Bench) -> None:
    found = bench.deviations(row.plan(), row.packed)
    assert [deviation for deviation in found if not deviation.is_same] == []
