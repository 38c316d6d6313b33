"""Does `forgeplan explain` tell files, values and codes apart, and answer each?"""

from __future__ import annotations

import pytest

from tests.cli.conftest import Give


def test_a_file_is_shown_on_one_page_of_80_columns(give: Give) -> None:
    said = give("explain", "small.forge")
    assert said.exit_code == 0
    assert said.out.startswith("small ")
    assert "── PROGRAM ──" in said.out
    assert max(map(len, said.out.splitlines())) <= 80


def test_a_compiled_plan_is_shown_like_its_file(give: Give) -> None:
    give("compile", "small.forge")
    assert give("explain", "small.plan.json").out == give("explain", "small.forge").out


def test_a_value_is_shown_with_every_layer_that_set_it(give: Give) -> None:
    said = give("explain", "small.forge", "optimizer.lr", "--set", "optimizer.lr=1e-4")
    assert "optimizer.lr = 1e-4" in said.out
    assert "→  command line" in said.out
    assert "small.forge:11:28" in said.out


def test_a_value_can_be_asked_for_in_a_plan_with_faults(give: Give) -> None:
    said = give("explain", "faulty.forge", "model.heads")
    assert said.exit_code == 0
    assert said.out.startswith("model.heads = 3\n")


def test_every_value_is_listed_with_who_decided_it(give: Give) -> None:
    lines = give("explain", "small.forge", "--all").out.splitlines()
    rows = {line.split()[0]: line.split()[1:] for line in lines if line.startswith("  ")}
    assert rows["model.heads"] == ["4", "small.forge:8:55"]
    assert rows["model.qk_norm"] == ["false", "default"]
    assert rows["mesh.dp_shard"] == ["2", "computed"]
    assert rows["model.kv_heads"] == ["4", "default"]
    # 64·32 embedding, 64·32 head, 32 norm; a block has 4·32·32 attention, 3·32·64 mlp, 2·32 norms.
    assert rows["model.params"] == ["24_736", "computed"]


@pytest.mark.parametrize("code", ["FP0501", "fp0501", "no-checkpoint"])
def test_a_code_gives_its_page(give: Give, code: str) -> None:
    said = give("explain", code)
    assert said.exit_code == 0
    assert said.out.lower().startswith(code.lower() + ": ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("FP0001",), "there is no code FP0001"),
        (("no-checkpont",), "there is no code no-checkpont; there is no-checkpoint"),
        (("small.forge", "modl.heads"), "the plan has no `modl.heads`; did you mean `model.heads`?"),
        (("small.forge", "model.heads", "--all"), "--all shows every value, and 'model.heads' asks for one"),
        (("none.forge",), "there is no file none.forge"),
        (("small.plan.json", "seed"), "small.plan.json is compiled"),
    ],
)
def test_what_cannot_be_explained_is_named(give: Give, arguments: tuple[str, ...], message: str) -> None:
    said = give("explain", *arguments)
    assert (said.exit_code, said.out) == (2, "")
    assert message in said.err
