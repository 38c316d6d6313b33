"""Does a compiled model train what one that is not compiled trains, run after run, and with what inductor writes?"""

from __future__ import annotations

import pytest
from attrs import evolve

from forgeplan.runtime.selftest.bench import Bench
from forgeplan.runtime.selftest.row import Row
from forgeplan.runtime.selftest.rows.wrapped import FOUR_STAGES, PP2

STAGES = Row("stages", PP2, model={"layers": 4}, axes=FOUR_STAGES, accumulation=4, dtype="fp32")


def test_stages_are_compiled_each_time_anew(bench: Bench) -> None:
    """C050: two stages on each of two ranks, compiled twice by the same processes."""
    compiled = evolve(STAGES, transforms={"compile": {"backend": "aot_eager"}}).plan()
    first, second = (bench.trained(compiled, packed=False) for _ in range(2))
    assert (first.losses, first.norms) == (second.losses, second.norms)
    plain = bench.trained(STAGES.plan(), packed=False)
    assert first.losses == pytest.approx(plain.losses, rel=1e-4)


def test_what_inductor_writes_trains_the_same(bench: Bench) -> None:
    """The backend that plans get by themselves. One block, as translating takes seconds."""
    row = Row(
        "inductor", model={"layers": 1}, transforms={"compile": {"fullgraph": True}}, dtype="fp32", accumulation=2
    )
    found = bench.deviations(row.plan(), packed=False)
    assert [deviation for deviation in found if not deviation.is_same] == []
