"""Is what fits at a place offered there, and nothing that does not?"""

from __future__ import annotations

from pathlib import Path

import pytest

from forgeplan.analysis import analyse
from forgeplan.lsp.features.completion import completion
from forgeplan.spec.registry import components
from forgeplan.spec.setting import settings_of
from tests.lsp.cursor import CURSOR, PLAN, at_cursor


def offered(folder: Path, text: str) -> dict[str, str]:
    """Label and text of every item, in order."""
    items = completion(*at_cursor(folder, text)).items
    assert [item.sort_text for item in items] == sorted(str(item.sort_text) for item in items)
    return {item.label: item.insert_text or item.label for item in items}


def inside(statement: str) -> str:
    return f"forge 1\n\nlet mine = 3\n\nplan p {{\n  seed = 17\n  {statement}\n}}\n"


CASES = {
    "fields of a plan, not those it has": (inside("│"), ["cluster", "model", "eval", "profile"], ["seed", "tp", "lr"]),
    "the start of a word": (inside("op│"), ["optimizer"], ["lr"]),
    "fields of a record": (inside("mesh = { │ }"), ["tp", "cp", "dp_shard"], ["lr", "seed", "layers"]),
    "not a field that stands behind": (inside("mesh = { │, tp = 2 }"), ["cp"], ["tp"]),
    "fields of a component": (inside("optimizer = adamw { lr = 1e-3, │ }"), ["betas", "weight_decay"], ["lr", "tp"]),
    "over several lines": (inside("optimizer = adamw {\n    lr = 1e-3\n    │\n  }"), ["betas"], ["lr", "seed"]),
    "fields of what a library declares": (
        'forge 1\nfrom "std:models" import llama3_8b\nplan p {\n  model = llama3_8b { │ }\n}\n',
        ["layers", "context", "rope"],
        ["lr"],
    ),
    "behind a dot": (inside("model.│"), ["layers", "rope"], ["lr", "tp"]),
    "behind two": (inside("model.rope.│"), ["theta"], ["layers"]),
    "transforms by path": (inside("apply.│"), ["recompute", "tp", "fp8"], ["layers"]),
    "options of a transform by path": (inside("apply.recompute.│"), ["mode"], ["tp"]),
    "members": (inside("precision = { compute = │ }"), ["bf16", "fp32"], ["adamw", "tp", "mine"]),
    "components": (inside("schedule = │"), ["cosine", "wsd", "none"], ["adamw"]),
    "transforms in a list": (inside("apply = [│]"), ["tp", "recompute", "compile"], ["adamw", "cosine"]),
    "options in a list": (inside("apply = [recompute { │ }]"), ["mode"], ["layers"]),
    "members of an option": (inside("apply = [recompute { mode = │ }]"), ["full", "selective"], ["bf16"]),
    "truth": (inside("model = decoder { tie = │ }"), ["true", "false"], []),
    "units of the dimension": (inside("checkpoint = { every = 30 │ }"), ["min", "h", "steps", "tokens"], ["GiB"]),
    "units of one dimension": (inside("batch = { micro = 4 │ }"), ["sequences"], ["tokens", "min", "GiB"]),
    "names of sources": (
        inside("sources = { web = synthetic }\n  eval e { source = │ }"), ["web"], ["bf16", "adamw"]),
    "keys of a mixture": (inside("sources = { web = synthetic }\n  mixture = { │ }"), ["web"], ["seed"]),
    "nodes by path": (inside("eval held { }\n  delete eval.│"), ["held"], ["seed"]),
    "a path to delete": (inside("delete │"), ["model", "checkpoint"], ["assert"]),
    "plans to extend": ("forge 1\nplan base {}\nplan p extends │", ["base"], ["seed", "plan"]),
    "plans to sweep over": ("forge 1\nplan base {}\nsweep s over │", ["base"], ["seed"]),
    "what a sweep has": ("forge 1\nplan base {}\nsweep s over base {\n  │\n}", ["axis", "limit"], ["profile", "seed"]),
    "what a test has": ('forge 1\nplan p {}\ntest "t" for p {\n  │\n}', ["expect"], ["axis", "seed"]),
    "statements of a file": ("forge 1\n\n│", ["plan", "let", "param", "sweep", "test", "from"], ["seed", "tp"]),
    "modules": ('forge 1\nfrom "│', ["std:models", "std:clusters"], ["plan"]),
    "names of a module": ('forge 1\nfrom "std:models" import │', ["llama3_8b", "qwen3_0_6b"], ["h200_node"]),
    "types": ("forge 1\nparam x: │", ["Rate", "Int", "Tokens"], ["seed"]),
    "lints to allow": ("forge 1\n# forge: allow │\n", ["no-checkpoint", "never-fires"], ["FP0101"]),
    "computed values in an assertion": (inside("assert model.│"), ["params", "layers"], ["lr"]),
    "what an assertion can read": (inside("assert │"), ["model", "memory", "mine"], []),
    "names of the type, not others": (
        'forge 1\nfrom "std:models" import llama3_8b\nlet o = adamw { lr = 1 }\nlet n = 3\nplan p {\n  seed = │\n}\n',
        ["n"], ["o", "llama3_8b"]),
    "components of the type, through an import": (
        'forge 1\nfrom "std:models" import llama3_8b\nlet o = adamw { lr = 1 }\nlet n = 3\nplan p {\n  model = │\n}\n',
        ["llama3_8b", "decoder"], ["o", "n", "adamw"]),
    "not the name that is being declared": ("forge 1\nlet a = 1\nlet b = │", ["a"], ["b"]),
    "values of an axis": (
        "forge 1\nplan base {}\nsweep s over base {\n  axis precision.compute in [│]\n}", ["bf16"], ["adamw"]),
    "a list in its brackets": (inside("apply = │"), ["recompute", "tp"], ["adamw"]),
    "own fields": (inside("model = decoder { layers = 4, dim = self.│ }"), ["layers", "heads"], ["params", "lr"]),
    "inside of a text": (inside('checkpoint = { path = "a/${model.│}" }'), ["params", "layers"], ["lr"]),
    "nodes in an assertion": (inside("eval held { }\n  assert eval.│"), ["held"], ["seed"]),
    "codes of a test": ('forge 1\nplan p {}\ntest "t" for p {\n  expect error │\n}', ["FP0412"], ["max"]),
    "nothing in a comment": (inside("# mo│"), [], ["model"]),
    "nothing in a text": (inside('tokenizer = bpe { path = "to│" }'), [], ["model", "tokenizer"]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "wanted", "unwanted"), CASES.values(), ids=list(CASES))
def test_what_fits_is_offered(tmp_path: Path, text: str, wanted: list[str], unwanted: list[str]) -> None:
    found = offered(tmp_path, text)
    assert [name for name in wanted if name not in found] == []
    assert [name for name in unwanted if name in found] == []


def test_what_is_required_comes_first_and_is_written_out(tmp_path: Path) -> None:
    found = offered(tmp_path, inside("optimizer = adamw { │ }"))
    assert next(iter(found)) == "lr"
    assert offered(tmp_path, inside("optimizer = │"))["adamw"] == "adamw { lr = ${1:3e-4} }"
    assert offered(tmp_path, inside("apply = │"))["tp"] == "[tp]"
    assert offered(tmp_path, inside("│"))["eval"] == "eval ${1:name} { source = ${2:web}, every = ${3:500 steps} }"


def test_a_place_in_a_whole_plan_is_the_same_in_half_of_it(tmp_path: Path) -> None:
    """What stands behind the cursor, and whether it can be read, makes no difference to which block it is."""
    whole = PLAN.replace("{ lr = peak }", f"{{ {CURSOR} }}")
    half = whole[: whole.index(CURSOR) + 1]
    assert list(offered(tmp_path, whole)) == list(offered(tmp_path, half))


def test_behind_a_dot_stand_the_fields_of_the_component_that_the_plan_has(tmp_path: Path) -> None:
    text = PLAN.replace("  budget", f"  sources.made.{CURSOR}\n  budget")
    snapshot, at, workspace = at_cursor(tmp_path, text)
    before = {item.label for item in completion(snapshot, at, workspace).items}
    snapshot.analysis = analyse(snapshot.name, text=PLAN)
    fields = {item.label for item in completion(snapshot, at, workspace).items}
    assert fields == set(settings_of(components("source")["synthetic"]))
    assert before > fields


def test_plans_of_another_file_are_offered_to_extend(tmp_path: Path) -> None:
    (tmp_path / "forge.toml").touch()
    (tmp_path / "lib.forge").write_text("forge 1\nlet width = 4\nplan base {}\n")
    whole = offered(tmp_path, 'forge 1\nimport "lib.forge" as lib\nplan p extends lib.│ {}\n')
    assert list(whole) == ["base"]
    named = 'forge 1\nfrom "lib.forge" import base, width\nplan p extends │ {}\n'
    assert "base" in offered(tmp_path, named)
    assert "width" not in offered(tmp_path, named)


@pytest.mark.parametrize("cut", range(20, len(PLAN), 7))
def test_no_place_of_a_plan_is_without_answer(tmp_path: Path, cut: int) -> None:
    completion(*at_cursor(tmp_path, PLAN[:cut] + CURSOR))
    completion(*at_cursor(tmp_path, PLAN[:cut] + CURSOR + PLAN[cut:]))


def test_an_editor_without_snippets_gets_plain_text(tmp_path: Path) -> None:
    items = completion(*at_cursor(tmp_path, inside("│")), snippets=False).items
    texts = {item.label: item.insert_text for item in items}
    assert texts["eval"] == "eval name { source = web, every = 500 steps }"
    assert [item.label for item in items if "$" in (item.insert_text or "") or item.insert_text_format] == []
