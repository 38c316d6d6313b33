"""Does a plan mean the same after every renaming that is not refused?"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from forgeplan.analysis import analyse
from forgeplan.dsl.symbols import Symbol
from forgeplan.lsp.features.rename import CannotRename, rename
from forgeplan.lsp.snapshot import Snapshot
from forgeplan.lsp.workspace import Documents

LIBRARY = """forge 1

from "std:clusters" import cpu_host

let width = 64
let depth = 2
param rate: Rate(1e-6 .. 1e-2) = 1e-3

partial plan base {
  let rows = 8
  cluster   = cpu_host { devices_per_node = 2 }
  model     = decoder { layers = depth, dim = width, heads = 4, vocab = 257, context = 64 tokens }
  tokenizer = byte
  sources   = { py = python_source, made = python_source }
  mixture   = { py = 50%, made = 50% }
  batch     = { global = rows * 1 sequence, micro = 2 sequences, length = 64 tokens }
  optimizer = adamw { lr = rate, betas = [for x in [0.9, 0.95] if x < 1: x] }
  budget    = { steps = 20 steps }
  eval held { source = py, split = 1%, every = 10 steps }

  profile quick {
    let few = 5
    budget = { steps = few * 1 steps }
    mixture.py = 60%
    mixture.made = 40%
    delete eval.held
  }
}
"""
PLANS = """forge 1

import "lib.forge" as lib
from "lib.forge" import base, rate, width

let tall = width + lib.depth

plan p extends base {
  let scale = 2
  model.layers = scale * lib.depth
  seed = tall
  checkpoint.path = "runs/${tall}/${plan.name}/${mixture.py}"
  mixture.py = 40%
  mixture.made = 60%
  eval other { source = made, every = 5 steps }
  assert eval.other.every <= 6 steps and mixture.py > 1% else "so ${eval.other.every}"
}

plan q extends lib.base {
  seed = 3
}

sweep s over p {
  axis rate in [1e-4, 2e-4]
  axis mixture.py in [40%]
  axis seed in 0 .. 1
  exclude rate > 1e-4 and seed > 0
}

test "t" for p {
  expect mixture.py == 40%
  expect error FP0412 with { eval.other.source = py, mesh.tp = 3 }
}
"""
FILES = {"lib.forge": LIBRARY, "plans.forge": PLANS}
FRESH = "quite_new"


@pytest.fixture
def workspace(tmp_path: Path) -> Documents:
    (tmp_path / "forge.toml").touch()
    found = Documents(folders=[tmp_path])
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
        found.put((tmp_path / name).as_uri(), 1, text)
    return found


def renamed(document: Snapshot, symbol: Symbol, new: str, workspace: Documents) -> dict[str, str] | None:
    """The text of every document behind the renaming, by path; None where it is refused."""
    try:
        edit = rename(document, symbol.span.start, new, workspace)
    except CannotRename:
        return None
    assert edit is not None
    assert edit.changes
    texts = {}
    for one in workspace.open_documents():
        text = one.text
        spans = [(one.offset(e.range.start), one.offset(e.range.end)) for e in edit.changes.get(one.uri, ())]
        for start, end in sorted(spans, reverse=True):
            text = text[:start] + new + text[end:]
        texts[str(workspace.path_of(one.uri))] = text
    return texts


def meaning(texts: dict[str, str]) -> list[str]:
    """Every value of every view and every diagnostic of all files."""
    found = []
    for path, text in texts.items():
        analysis = analyse(path, text=text, unsaved=texts)
        for view in analysis.loaded.resolved():
            found += [f"{view.job.name} {path} = {leaf.value}" for path, leaf in view.job.leaves.items()]
            found += [f"{view.job.name} {path} = {value}" for path, value in view.job.derived.items()]
        found += [f"{d.code}: {d.message}" for d in analysis.diagnostics]
    return found


def alike(found: list[str], *names: str) -> list[str]:
    """The same with all of `names` written alike."""
    word = re.compile(rf"\b({'|'.join(names)})\b")
    return sorted(word.sub("*", one) for one in found)


def symbols(workspace: Documents) -> Iterator[tuple[Snapshot, Symbol]]:
    return ((one, symbol) for one in workspace.open_documents() for symbol in one.index.symbols)


def held_to(workspace: Documents, new: str) -> tuple[int, list[str]]:
    """How many symbols took the new name, and those that changed the meaning by it."""
    before = meaning({str(workspace.path_of(one.uri)): one.text for one in workspace.open_documents()})
    taken, changed = 0, []
    for document, symbol in symbols(workspace):
        name = symbol.target.name
        texts = renamed(document, symbol, new, workspace) if name != new else None
        if texts is not None:
            taken += 1
            if alike(meaning(texts), name, new) != alike(before, name, new):
                changed.append(f"{document.name}: {symbol.kind} {name}")
    return taken, changed


def test_a_fresh_name_changes_nothing_but_the_name(workspace: Documents) -> None:
    taken, changed = held_to(workspace, FRESH)
    assert changed == []
    assert taken == sum(1 for _, symbol in symbols(workspace) if symbol.target.name != "cpu_host")


REFUSED = [
    ("let width", "seed", "a sweep varies the field `seed`"),
    ("let width", "mixture", "`mixture.py` is read"),
    ("let width", "plan", "`plan.name` is read in a text"),
    ("let width", "made", "a source is named by its bare word"),
    ("let rows", "py", "the same in a body"),
    ("let depth", "rate", "the file has it"),
    ("entry py", "made", "the map has it"),
    ("entry py", "rows", "the word would be a `let` of the body"),
    ("entry py", "tall", "the word would be a `let` of a file that extends the plan"),
    ("entry held", "other", "a plan that extends this one has it"),
]


@pytest.mark.parametrize(("symbol", "new", "reason"), REFUSED)
def test_a_name_that_is_read_as_something_else_is_refused(
    workspace: Documents, symbol: str, new: str, reason: str
) -> None:
    document, found = next((d, s) for d, s in symbols(workspace) if f"{s.kind} {s.target.name}" == symbol)
    with pytest.raises(CannotRename):
        rename(document, found.span.start, new, workspace)


WORDS = (
    "model",
    "mixture",
    "seed",
    "eval",
    "max",
    "plan",
    "bf16",
    "decoder",
    "params",
    "lr",
    "sources",
    "none",
    "apply",
)


@pytest.mark.slow
def test_every_name_in_the_place_of_every_other(workspace: Documents) -> None:
    names = {symbol.target.name for _, symbol in symbols(workspace)}
    counts = {new: held_to(workspace, new) for new in sorted(names | set(WORDS))}
    assert {new: changed for new, (_, changed) in counts.items() if changed} == {}
    assert sum(taken for taken, _ in counts.values()) > 200
