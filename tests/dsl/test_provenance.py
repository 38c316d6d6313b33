"""Can every value be traced to the places that decided it?"""

from __future__ import annotations

from forgeplan.diagnostics.span import COMMAND_LINE, SCHEMA
from tests.dsl.plans import CONTEXT, extended, job_of, read


def places(loaded, leaf) -> list[tuple[str, str, str]]:
    return [(loaded.sources.place(o.span), o.layer, o.text) for o in leaf.origins]


def test_every_layer_that_set_a_value_is_listed_strongest_first() -> None:
    """Case C015."""
    text = CONTEXT + (
        "plan base extends context { optimizer = adamw { lr = 3e-4, eps = 1e-7 } }\n"
        "plan child extends base {\n  optimizer.eps = 2e-7\n  profile p { optimizer.eps = 3e-7 }\n}\n"
    )
    loaded = read(text, "optimizer.eps=4e-7", profile="p")
    leaf = loaded.job("child", "p").leaves["optimizer.eps"]
    assert places(loaded, leaf) == [
        ("<command line>:1:15", "command line", "4e-7"),
        ("plan.forge:20:31", "profile p", "3e-7"),
        ("plan.forge:19:19", "plan child", "2e-7"),
        ("plan.forge:17:66", "plan base", "1e-7"),
        ("schema", "schema default", "1e-8"),
    ]
    assert leaf.written


def test_a_value_inside_a_replaced_record_stays_in_the_list() -> None:
    job = job_of("mesh = { dp_shard = 2, dp_replicate = 2 }\nprofile p { mesh = { dp_shard = 4 } }", profile="p")
    assert [(o.layer, o.text) for o in job.leaves["mesh.dp_shard"].origins] == [
        ("profile p", "4"),
        ("plan example", "2"),
        ("schema default", "auto"),
    ]
    assert [(o.layer, o.text) for o in job.leaves["mesh.dp_replicate"].origins] == [
        ("schema default", "1"),
        ("plan example", "2"),
    ]


def test_a_value_from_a_shipped_module_points_into_it() -> None:
    loaded = extended("")
    origin = loaded.job("example").leaves["model.heads"].origin
    assert (origin.span.file, origin.layer, origin.text) == ("std:models", "plan context", "32")


def test_a_computed_value_says_so_and_is_not_written() -> None:
    job = job_of("")
    leaf = job.leaves["mesh.dp_shard"]
    assert (leaf.value, leaf.written) == (4, False)
    assert [o.layer for o in leaf.origins] == ["computed", "schema default"]
    assert job.leaves["batch.accumulation"].origins[0].layer == "computed"


def test_every_leaf_has_an_origin_with_a_place_or_a_known_layer() -> None:
    loaded = extended("eval e { source = web, every = 10 steps }\ncheckpoint = { every = 1h }", "seed=1")
    names = {s.name for s in loaded.sources}
    for path, leaf in loaded.job("example").leaves.items():
        assert leaf.origins, path
        for origin in leaf.origins:
            if origin.span.file == SCHEMA:
                assert origin.layer in ("schema default", "computed"), path
                assert origin.text, path
            else:
                assert origin.span.file in names, path
                assert origin.span.end > origin.span.start or origin.span.file == COMMAND_LINE, path


def test_a_component_has_a_leaf_with_its_name_and_its_blocks() -> None:
    job = job_of("")
    assert job.leaves["optimizer"].value == "adamw"
    assert job.leaves["model"].value == "decoder"
    assert job.leaves["sources.web"].value == "text"
    assert job.leaves["mixture"].value is None
    assert "mesh" not in job.leaves
    assert job.blocks["model"].heads == 32
    assert job.blocks["model.rope"].theta == 500_000
    assert job.plan is not None
    assert job.plan.batch.micro == 4
