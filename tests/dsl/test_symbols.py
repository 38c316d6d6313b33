"""Is every name of a file traced to its declaration, in the file and across imports?"""

from __future__ import annotations

import pytest

from forgeplan.diagnostics.source import Source
from forgeplan.dsl.parser import parse
from forgeplan.dsl.symbols import Index, Target, declaration, home, index_of

LIBRARY = """forge 1

from "std:clusters" import h200_node

let width = 64

partial plan base {
  sources = { web = text { path = "a" }, code = text { path = "b" } }
  mixture = { web = 80%, code = 20% }
}
"""

PLANS = """forge 1

import "lib.forge" as lib
from "lib.forge" import base, h200_node

let scale = 2
param peak: Rate(1e-6 .. lib.width) = 3e-4

plan a extends base {
  let scale = 3
  cluster   = h200_node
  model     = decoder { dim = lib.width * scale, heads = [for w in [1, scale] if w > 1: w][0] }
  optimizer = adamw { lr = peak }
  mixture.web = 60%
  eval held { source = web, every = 5 steps }
  eval later after held { source = code, every = 5 steps }

  profile smoke {
    let scale = 5
    model.layers = scale
    delete eval.held
  }
}

plan b extends a { seed = scale, checkpoint.path = "x/${lib.width}/${plan.name}" }
plan c extends lib.base {}

sweep s over b {
  axis peak in [1e-4, 2e-4]
  axis mixture.web in [50%, 70%]
  exclude peak > scale
}

test "t" for b {
  expect sources.web == scale
  expect error FP0412 with { eval.later.source = code }
}
"""


def index(text: str, name: str) -> Index:
    return index_of(parse(Source(name, text)).file, name)


FILES = {"lib.forge": index(LIBRARY, "lib.forge"), "plans.forge": index(PLANS, "plans.forge")}


def load(importer: str, written: str) -> Index | None:
    return FILES.get(written)


def place(text: str, marker: str) -> int:
    """Where the part of `marker` behind its `|` begins; what is before it makes it unique."""
    before, _, after = marker.partition("|")
    assert text.count(before + after) == 1, marker
    return text.index(before + after) + len(before)


def declared_at(marker: str) -> tuple[str, int]:
    """The file and the offset of the declaration of what stands at a place of PLANS."""
    one = FILES["plans.forge"].at(place(PLANS, marker))
    assert one is not None, marker
    found = declaration(one.target, FILES["plans.forge"], load)
    assert found is not None, marker
    where, symbol = found
    return where.file, symbol.span.start


CASES = [
    ("axis |peak in", "plans.forge", "param |peak:"),
    ("lr = |peak }", "plans.forge", "param |peak:"),
    ("exclude |peak", "plans.forge", "param |peak:"),
    ("1e-6 .. lib.|width)", "lib.forge", "let |width"),
    ("1e-6 .. |lib.width)", "plans.forge", "as |lib"),
    ("path = \"x/${lib.|width}", "lib.forge", "let |width"),
    ("dim = lib.width * |scale", "plans.forge", "  let |scale = 3"),
    ("[1, |scale] if", "plans.forge", "  let |scale = 3"),
    ("layers = |scale", "plans.forge", "let |scale = 5"),
    ("{ seed = |scale", "plans.forge", "\nlet |scale = 2"),
    ("sources.web == |scale", "plans.forge", "\nlet |scale = 2"),
    ("if |w > 1", "plans.forge", "for |w in"),
    ("1: |w]", "plans.forge", "for |w in"),
    ("a extends |base {", "lib.forge", "plan |base"),
    ("extends lib.|base", "lib.forge", "plan |base"),
    ("b extends |a", "plans.forge", "plan |a extends"),
    ("s over |b", "plans.forge", "plan |b extends"),
    ('"t" for |b', "plans.forge", "plan |b extends"),
    ("later after |held", "plans.forge", "eval |held {"),
    ("delete eval.|held", "plans.forge", "eval |held {"),
    ("with { eval.|later", "plans.forge", "eval |later after"),
    ("held { source = |web", "lib.forge", "sources = { |web"),
    ("after held { source = |code", "lib.forge", "|code = text"),
    ("  mixture.|web = 60%", "lib.forge", "sources = { |web"),
    ("axis mixture.|web", "lib.forge", "sources = { |web"),
    ("sources.|web ==", "lib.forge", "sources = { |web"),
    ("later.source = |code", "lib.forge", "|code = text"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "file", "declaration"), CASES, ids=[case[0] for case in CASES])
def test_a_name_leads_to_its_declaration(name: str, file: str, declaration: str) -> None:
    text = {"lib.forge": LIBRARY, "plans.forge": PLANS}[file]
    assert declared_at(name) == (file, place(text, declaration))


def test_entries_of_plans_that_extend_one_another_are_one() -> None:
    web = [FILES["plans.forge"].at(place(PLANS, marker)) for marker in ("{ source = |web", "sources.|web ==")]
    homes = {home(one.target, FILES["plans.forge"], load) for one in web if one is not None}
    assert homes == {(FILES["lib.forge"], Target("web", owner="sources:base"))}


def test_what_is_imported_may_be_imported_on() -> None:
    one = FILES["plans.forge"].at(place(PLANS, "cluster   = |h200_node"))
    assert one is not None
    assert home(one.target, FILES["plans.forge"], load) is None  # The library's file is not known here.
    assert FILES["lib.forge"].names["h200_node"] == Target("h200_node", "std:clusters")


def test_fields_members_and_derived_values_are_no_symbols() -> None:
    for marker in ("  |model     =", "model.|layers", "= |decoder", "plan.|name}", "|checkpoint.path", "error |FP0412"):
        assert FILES["plans.forge"].at(place(PLANS, marker)) is None, marker


def test_keywords_may_be_names() -> None:
    """C019: `let let = 1`, and a source called `error`."""
    text = "forge 1\nlet let = 1\nlet test = 2\nplan p { seed = let + test }\n"
    found = index(text, "p.forge")
    assert [text[o.span.start : o.span.end] for o in found.of(Target("let"))] == ["let", "let"]
    assert [text[o.span.start : o.span.end] for o in found.of(Target("test"))] == ["test", "test"]


def test_a_damaged_file_keeps_its_other_names() -> None:
    text = "forge 1\nlet a = 2 +\nlet b = a\nplan p { seed = = b, model = decoder { dim = b }\n"
    found = index(text, "p.forge")
    assert len(found.of(Target("b"))) >= 2
    assert len(found.of(Target("a"))) >= 1


def test_what_a_place_can_read_is_of_the_bodies_around_it() -> None:
    at = place(PLANS, "layers = |scale")
    visible = {(one.target.name, one.kind) for one in FILES["plans.forge"].visible(at)}
    assert ("scale", "let") in visible
    assert ("w", "variable") not in visible
    assert ("w", "variable") in {(s.target.name, s.kind) for s in FILES["plans.forge"].visible(place(PLANS, "1: |w]"))}


def test_words_that_a_param_may_be_are_not_read() -> None:
    found = index("forge 1\nlet fast = 1\nparam mode: OneOf(fast, slow) = slow\n", "p.forge")
    assert len(found.of(Target("fast"))) == 1
