"""Is a value written where a person would write it: in the record, component or transform that it belongs to?"""

from __future__ import annotations

import pytest

from forgeplan.analysis import analyse
from forgeplan.dsl.writing import Writer
from forgeplan.plan.operations import OPERATIONS
from tests.docs.harness import FILE, whole


def writer(body: str) -> tuple[str, Writer]:
    text = whole(body)
    analysis = analyse(FILE, text=text)
    job = analysis.job("example")
    return text, Writer(analysis.loaded.module.file, analysis.sources, job, tuple(OPERATIONS))


def set_in(body: str, path: str, value: str) -> str | None:
    """The statements of the plan afterwards."""
    text, writes = writer(body)
    edit = writes.set(path, value)
    if edit is None:
        return None
    after = text[: edit.span.start] + edit.replacement + text[edit.span.end :]
    assert not [d.message for d in analyse(FILE, text=after).errors]
    return after.partition("plan example extends context {\n")[2].rpartition("\n}")[0].replace("\n  ", "\n").strip()


@pytest.mark.parametrize(
    ("before", "path", "value", "after"),
    [
        ("mesh = { tp = 1 }", "mesh.tp", "2", "mesh = { tp = 2 }"),
        ("mesh = { tp = 1 }", "mesh.cp", "2", "mesh = { tp = 1, cp = 2 }"),
        ("mesh.dp_shard = auto", "mesh.dp_shard", "4", "mesh.dp_shard = 4"),
        ("seed = 3", "mesh.tp", "2", "seed = 3\nmesh.tp = 2"),
        ("seed = 3 # why", "model.heads", "16", "seed = 3 # why"),
        ("schedule = linear {}", "schedule.warmup", "1%", "schedule = linear { warmup = 1% }"),
        ("apply = [fp8, compile, fsdp]", "apply.fp8.recipe", "rowwise",
         "apply = [fp8 { recipe = rowwise }, compile, fsdp]"),
        ("apply = [tp { kv = shard }, fsdp]", "apply.recompute.mode", "none",
         "apply = [tp { kv = shard }, recompute { mode = none }, fsdp]"),
        ("apply = [recompute, fsdp]", "apply.compile", "", "apply = [recompute, compile, fsdp]"),
        ("seed = 3", "apply.recompute.mode", "none", "seed = 3\napply = [recompute { mode = none }]"),
        ("mixture = { web = 1 }", "mixture", "{ web = 2 }", "mixture = { web = 2 }"),
        ("eval x { source = web, split = 1%, every = 9 steps }", "eval.x.batches", "3",
         "eval x { source = web, split = 1%, every = 9 steps, batches = 3 }"),
    ],
)  # fmt: skip
def test_a_value_is_written_in_its_place(before: str, path: str, value: str, after: str) -> None:
    assert set_in(before, path, value) == after


def test_what_another_plan_of_the_file_decides_is_changed_there() -> None:
    text, writes = writer("seed = 3")
    edit = writes.set("model.heads", "16")
    assert edit is not None
    assert text[edit.span.start - 8 : edit.span.end] == "heads = 32"


def test_a_module_of_forgeplan_is_left_and_the_plan_says_otherwise() -> None:
    text = 'forge 1\n\nfrom "std:models" import llama3_8b\n\n' + whole("model = llama3_8b").partition("forge 1\n\n")[2]
    analysis = analyse(FILE, text=text)
    writes = Writer(analysis.loaded.module.file, analysis.sources, analysis.job("example"), tuple(OPERATIONS))
    edit = writes.set("model.heads", "16")
    assert edit is not None
    assert text[: edit.span.start].endswith("\n  model = llama3_8b")
    assert edit.replacement == " { heads = 16 }"


def test_a_list_of_transforms_in_a_base_of_another_file_is_not_repeated() -> None:
    analysis = analyse(FILE, text=whole("seed = 3"), overrides=("seed=4",))
    writes = Writer(analysis.loaded.module.file, analysis.sources, analysis.job("example"), tuple(OPERATIONS))
    assert writes.set("seed", "5") is None


@pytest.mark.parametrize(
    ("before", "path", "after"),
    [
        ("mesh = { tp = 2, cp = 1 }", "mesh.cp", "mesh = { tp = 2 }"),
        ("seed = 3\napply = [recompute { mode = full }, fsdp]", "apply.recompute", "seed = 3\napply = [fsdp]"),
        ('sources = { web = tokens { path = "a" }, b = tokens { path = "b" } }', "sources.b",
         'sources = { web = tokens { path = "a" } }'),
    ],
)  # fmt: skip
def test_a_statement_or_item_is_taken_out_whole(before: str, path: str, after: str) -> None:
    text, writes = writer(before)
    edit = writes.delete(path)
    assert edit is not None
    done = text[: edit.span.start] + edit.replacement + text[edit.span.end :]
    assert done == whole(after)
