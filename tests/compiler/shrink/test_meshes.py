"""Do few small meshes have every axis, every pair of axes and every relation of a large one?"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forgeplan.compiler.shrink.meshes import Arrangement, Options, covering, features_of
from forgeplan.plan.mesh import AXES, Mesh

PLAIN = Options(1, False, False, False, False, False)


def shown(mesh: Mesh, options: Options = PLAIN, per_node: int = 8, most: int = 8) -> list[str]:
    found, missing = covering(Arrangement(mesh, per_node), options, most)
    assert not missing
    return [
        f"{at.mesh.describe()}{f' on {at.mesh.world // at.per_node}' * (at.per_node < at.mesh.world)}" for at in found
    ]


LARGE: dict[str, tuple[Mesh, dict[str, Any], list[str]]] = {
    "one rank": (Mesh(), {}, [""]),
    "replicas of shards": (Mesh(dp_replicate=2, dp_shard=32), {}, ["dp_replicate 2, dp_shard 2"]),
    "experts on every rank of a node": (
        Mesh(dp_replicate=8, dp_shard=8, ep=8), {}, ["dp_replicate 2, dp_shard 2, ep 2"],
    ),
    "experts that are sharded further": (Mesh(dp_shard=16, ep=4), {}, ["dp_shard 4, ep 2"]),
    "groups of experts inside those of tp": (Mesh(dp_shard=2, tp=8, ep=4), {}, ["dp_shard 2, tp 4, ep 2"]),
    "groups of experts across those of tp": (Mesh(dp_shard=2, tp=3, ep=2), {}, ["dp_shard 2, tp 3, ep 2"]),
    "a stage in the middle": (Mesh(pp=4), {}, ["pp 3"]),
    "a stage in the middle of each rank's": (Mesh(pp=4), {"stages_per_rank": 2}, ["pp 2"]),
    "keys passed on": (Mesh(cp=8), {"passes_keys_on": True}, ["cp 3"]),
    "kv heads on several ranks": (Mesh(tp=16), {"copies_kv_heads": True}, ["tp 4"]),
    "shards over some ranks": (Mesh(dp_shard=16), {"keeps_some_sharded": True}, ["dp_shard 4"]),
    "one expert a rank": (Mesh(dp_shard=8, ep=8), {"lone_experts": True}, ["dp_shard 3, ep 3"]),
    "tokens that travel node by node": (Mesh(dp_shard=64, ep=32), {"by_node": True}, ["dp_shard 8, ep 4 on 4"]),
}  # fmt: skip


@pytest.mark.parametrize("name", LARGE)
def test_a_relation_is_kept_with_the_fewest_ranks(name: str) -> None:
    mesh, options, small = LARGE[name]
    fields = {field: getattr(PLAIN, field) for field in Options.__annotations__}
    assert shown(mesh, Options(**fields | options)) == small


def test_more_axes_than_fit_are_covered_in_pairs() -> None:
    found, missing = covering(Arrangement(Mesh(4, 2, 4, 2, 8), 8), PLAIN, 8)
    assert not missing
    assert all(at.mesh.world <= 8 for at in found)
    together = {pair for at in found for pair in combinations([a for a in AXES if getattr(at.mesh, a) > 1], 2)}
    assert together == set(combinations(AXES, 2))


def test_what_does_not_fit_into_the_ranks_that_there_are_is_named() -> None:
    found, missing = covering(Arrangement(Mesh(dp_shard=4, tp=2), 8), PLAIN, 2)
    assert [at.mesh for at in found] == [Mesh(tp=2), Mesh(dp_shard=2)]
    assert missing == ("dp_shard with tp",)
    assert covering(Arrangement(Mesh(tp=2), 2), PLAIN, 1) == ([Arrangement(Mesh(), 1)], ("tp",))


DEGREES = st.sampled_from((1, 1, 2, 3, 4, 8, 16))


@settings(max_examples=300, deadline=None)
@given(st.tuples(*(DEGREES for _ in AXES)), DEGREES, st.tuples(*(st.booleans() for _ in range(5))), DEGREES)
def test_eight_ranks_are_enough_for_every_axis_and_pair(
    degrees: tuple[int, ...], ep: int, traits: tuple[bool, ...], stages: int
) -> None:
    """Relations may need more; they are named then. No axis appears that the plan does not have."""
    mesh = Mesh(*degrees)
    mesh = Mesh(*degrees, ep=ep if mesh.expert_fold % ep == 0 and mesh.pp == 1 else 1)
    whole, options = Arrangement(mesh, 8), Options(stages, *traits)
    above = [axis for axis in (*AXES, "ep") if getattr(mesh, axis) > 1]
    found, missing = covering(whole, options, 8)
    assert not set(missing) & {*above, *(f"{first} with {second}" for first, second in combinations(above, 2))}
    assert all(at.mesh.world <= 8 and at.mesh.world % at.per_node == 0 for at in found)
    assert all(getattr(at.mesh, axis) == 1 for at in found for axis in (*AXES, "ep") if getattr(mesh, axis) == 1)
    covered = {feature for at in found for feature in features_of(at, options)}
    assert features_of(whole, options) - covered == set(missing)
