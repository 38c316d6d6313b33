"""What do lowering, passes, text form and drawings make of a job?"""

from __future__ import annotations

import attrs
import pytest

from forgeplan.compiler.checking import facts_of
from forgeplan.compiler.draw import folded, to_dot, to_mermaid
from forgeplan.compiler.graph import Relation, edges, nodes
from forgeplan.compiler.lower import lower
from forgeplan.compiler.passes.manager import Results, analyses, in_order
from forgeplan.compiler.passes.program import in_order as in_program_order
from forgeplan.compiler.passes.structure import place_transforms, shard_modules
from forgeplan.compiler.text import GraphTextError, parse_graph, print_graph
from forgeplan.diagnostics.refusal import InternalError
from tests.compiler.jobs import job, share, steps
from tests.compiler.test_parameters import TINY

EVAL = {"eval": {"held": 0}, "eval.held.source": "web", "eval.held.every": steps(5)}

LOWERED = """
graph example
module model parameters=106816
module embedding parameters=16384
module layers.0 parameters=36992
module layers.1 parameters=36992
module norm parameters=64
module head parameters=16384
source web format=tokens weight=100%
axis dp_shard degree=4
transform recompute placed_by=plan
service eval.held every="5 steps"
service checkpoint every=end
service metrics every="10 steps"
module model -contains-> module embedding
module model -contains-> module layers.0
module model -contains-> module layers.1
module model -contains-> module norm
module model -contains-> module head
module embedding -feeds-> module layers.0
module layers.0 -feeds-> module layers.1
module layers.1 -feeds-> module norm
module norm -feeds-> module head
source web -feeds-> module embedding
source web -feeds-> service eval.held
"""


def test_a_job_is_lowered_to_modules_sources_axes_transforms_and_services() -> None:
    graph = lower(facts_of(job({**TINY, **EVAL, "apply": {"recompute": 0}})))
    assert print_graph(graph) == LOWERED.lstrip()


def test_what_was_rejected_is_left_out() -> None:
    made = job(TINY)
    partial = attrs.evolve(made, blocks={k: v for k, v in made.blocks.items() if k not in ("model", "mesh")}, plan=None)
    kinds = {node.KIND for node in nodes(lower(facts_of(partial)))}
    assert kinds == {"source", "service"}


def test_text_and_graph_are_two_forms_of_one_thing() -> None:
    graph = parse_graph(LOWERED)
    assert print_graph(graph) == LOWERED.lstrip()
    assert next(e[:2] for e in edges(graph, Relation.CONTAINS)) == ("module model", "module embedding")


@pytest.mark.parametrize(
    "line", ["gadget x", "module a -feeds-> module b", "axis x width=2", "module a -likes-> module a"]
)
def test_a_line_that_says_nothing_is_named_by_its_number(line: str) -> None:
    with pytest.raises(GraphTextError, match="line 3"):
        parse_graph(f"graph g\nmodule a\n{line}")


def test_placing_transforms_keeps_the_order_that_matters() -> None:
    before = parse_graph("graph g\nmodule model\ntransform recompute placed_by=plan")
    assert print_graph(place_transforms(before)) == (
        "graph g\n"
        "module model\n"
        "transform recompute placed_by=plan\n"
        "transform build placed_by=always\n"
        "transform fsdp placed_by=always\n"
        "transform materialise placed_by=always\n"
        "transform initialise placed_by=always\n"
        "transform recompute -must_precede-> transform fsdp\n"
        "transform build -must_precede-> transform recompute\n"
        "transform fsdp -must_precede-> transform materialise\n"
        "transform materialise -must_precede-> transform initialise\n"
    )


def test_a_graph_with_a_wrong_order_is_still_a_graph() -> None:
    before = parse_graph("graph g\ntransform fsdp placed_by=plan\ntransform recompute placed_by=plan")
    assert in_program_order(place_transforms(before)).index("recompute") == 1


def test_modules_with_parameters_are_sharded_over_axes_above_one() -> None:
    before = parse_graph(
        "graph g\nmodule model parameters=5\nmodule a parameters=5\nmodule tied\naxis dp_shard degree=2"
    )
    after = print_graph(shard_modules(before, {"a": ["dp_shard", "tp"]}))
    assert after == print_graph(before) + "module a -shards_over-> axis dp_shard\n"
    assert print_graph(shard_modules(before, {})) == print_graph(before)


def test_neighbouring_blocks_of_equal_shape_are_drawn_as_one() -> None:
    small = folded(lower(facts_of(job({**TINY, "model.layers": 12}))))
    assert [n.name for n in nodes(small) if n.KIND == "module"] == ["model", "embedding", "layers.0…11", "norm", "head"]


def test_drawings_name_every_node_of_the_folded_graph() -> None:
    results = Results(facts_of(job({**TINY, **EVAL, "mesh.dp_replicate": 2, "mixture": {"web": share(100)}})))
    graph = results["graph"]
    for drawing in (to_dot(graph), to_mermaid(graph)):
        for name in ("embedding", "layers.0…1", "dp_replicate", "dp_shard", "fsdp", "eval.held", "web"):
            assert name in drawing
    assert to_dot(graph).startswith('digraph "example" {')
    assert to_mermaid(graph).startswith("flowchart LR\n")


def test_every_analysis_comes_after_what_it_needs() -> None:
    done: set[str] = set()
    for found in in_order():
        assert set(found.needs) <= done
        done.add(found.name)
    assert done == set(analyses())


def test_an_analysis_sees_only_what_it_declared() -> None:
    inside = Results(facts_of(job(TINY)), {}, ("mesh",))
    assert inside["mesh"].world == 4
    with pytest.raises(InternalError, match="without having declared"):
        inside["shards"]


@pytest.mark.parametrize("applied", [{}, {"recompute": 0}, {"fsdp": 0}, {"recompute": 0, "fsdp": 0}])
def test_the_program_is_whole_and_says_who_placed_each_step(applied: dict[str, int]) -> None:
    program = Results(facts_of(job({**TINY, "apply": applied})))["program"]
    names = [operation.name for operation in program]
    assert names == [
        n for n in ("build", "recompute", "fsdp", "materialise", "initialise") if n != "recompute" or n in applied
    ]
    assert {o.name for o in program if o.placed_by == "plan"} == set(applied)


def test_recompute_none_is_no_step() -> None:
    program = Results(facts_of(job({**TINY, "apply": {"recompute": 0}, "apply.recompute.mode": "none"})))["program"]
    assert "recompute" not in [operation.name for operation in program]
