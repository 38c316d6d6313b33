"""Do the plans that ship compile, for every cluster that they promise, to the models that they name?"""

from __future__ import annotations

from pathlib import Path

import pytest

from forgeplan.analysis import analyse
from forgeplan.compiler import emit
from forgeplan.dsl.formatter import format_text
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.resources import resource

NAMES = ("quickstart", "debug", "dense_7b", "dense_13b", "dense_70b", "moe_debug", "moe_30b")

# Llama 3 8B and 70B as published; 14.84 billion for the shape that benchmarks call 13B:
# V·d·2 + L·(2·d·d + 2·d·kv·128 + 3·d·ffn + 2·d) + d with d 5120, L 40, kv 8, ffn 17920, V 128256.
# Qwen3 30B-A3B as published.
PARAMETERS = {
    "dense_7b": 8_030_261_248,
    "dense_13b": 14_840_386_560,
    "dense_70b": 70_553_706_496,
    "moe_30b": 30_532_122_624,
}

# (plan, nodes, devices of a node); an H200 has 140 GiB to use.
CLUSTERS = [
    *(("dense_7b", 1, devices) for devices in range(1, 9)),
    *(("dense_13b", nodes, 8) for nodes in range(1, 5)),
    *(("dense_13b", nodes, 4) for nodes in range(2, 9)),
    *(("dense_70b", nodes, 8) for nodes in (4, 8, 12, 16)),
    *(("dense_70b", nodes, 4) for nodes in (8, 16, 24, 32)),
    *(("moe_30b", nodes, 8) for nodes in (1, 2, 8, 64)),
    ("moe_30b", 8, 4),
]


def path_of(name: str) -> Path:
    return Path(str(resource(f"plans/{name}.forge")))


def compiled(name: str, *overrides: str, profile: str | None = None) -> ExecutionPlan:
    analysis = analyse(str(path_of(name)), overrides=overrides, profile=profile)
    assert list(analysis.diagnostics) == []
    (job,) = analysis.jobs
    return emit(job, sources=analysis.sources)


def test_every_plan_that_ships_is_listed_here() -> None:
    assert sorted(path.stem for path in path_of("debug").parent.glob("*.forge")) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_plan_is_without_fault_and_in_canonical_form(name: str) -> None:
    assert list(analyse(str(path_of(name))).diagnostics) == []
    text = path_of(name).read_text(encoding="utf-8")
    assert format_text(text) == text


@pytest.mark.parametrize(("name", "nodes", "devices"), CLUSTERS)
def test_a_large_plan_compiles_for_the_clusters_it_promises(name: str, nodes: int, devices: int) -> None:
    plan = compiled(name, f"cluster.nodes={nodes}", f"cluster.devices_per_node={devices}")
    assert plan.mesh.world == nodes * devices
    assert plan.estimates.num_parameters == PARAMETERS[name]
    states = max(ranks.state_bytes for ranks in plan.rank_classes)
    assert states < 140 * 2**30


@pytest.mark.parametrize(
    ("name", "ranks", "bytes_a_parameter"),
    [
        ("dense_7b", 8, 4 + 4 + 2 + 2),  # weights and gradients fp32, two moments bf16
        ("dense_13b", 8, 4 + 4 + 4 + 4),  # sharded inside a node, whatever the number of nodes
        ("dense_70b", 32, 4 + 4 + 4 + 4),
        ("moe_30b", 8, 4 + 4 + 4 + 4),  # experts dealt, and all else sharded, inside a node
    ],
)
def test_a_rank_holds_its_share_of_all_states(name: str, ranks: int, bytes_a_parameter: int) -> None:
    states = max(found.state_bytes for found in compiled(name).rank_classes)
    share = PARAMETERS[name] * bytes_a_parameter / ranks
    assert share <= states < share * 1.001  # step counts, and rows that do not divide


def test_131072_ranks_hold_what_64_hold() -> None:
    few, many = compiled("dense_70b"), compiled("dense_70b", "cluster.nodes=16384")
    assert many.mesh.world == 131_072
    assert [c.state_bytes for c in many.rank_classes] == [c.state_bytes for c in few.rank_classes]


def test_the_quickstart_is_small_and_its_smoke_profile_takes_one_process() -> None:
    assert compiled("quickstart").estimates.num_parameters < 5_000_000
    assert compiled("quickstart", profile="smoke").mesh.world == 1


@pytest.mark.parametrize("name", NAMES)
def test_every_value_of_a_shipped_plan_says_where_it_comes_from(name: str) -> None:
    plan = compiled(name)
    assert plan.provenance
    assert [path for path, found in plan.provenance.items() if not found] == []
