"""Is what stands under the cursor explained: field, value in force, declaration, component, number?"""

from __future__ import annotations

from pathlib import Path

import pytest
from lsprotocol import types as lsp

from forgeplan.lsp.features.hover import hover
from forgeplan.lsp.features.inlay_hints import inlay_hints
from forgeplan.lsp.features.semantic_tokens import TYPES, semantic_tokens
from forgeplan.lsp.features.signature_help import signature_help
from tests.lsp.cursor import CURSOR, PLAN, at_cursor


def hovered(folder: Path, text: str) -> str:
    found = hover(*at_cursor(folder, text, analysed=True))
    if found is None:
        return ""
    assert isinstance(found.contents, lsp.MarkupContent)
    return found.contents.value


def put(before: str, behind: str = "") -> str:
    """PLAN with the cursor behind `before`."""
    assert PLAN.count(before) == 1, before
    return PLAN.replace(before, before + CURSOR)


CASES = {
    "a field": (put("  optim"), ["**optimizer**", "The optimizer.", "optimizer"]),
    "its value and who decided it": (put("adamw { l"), ["**optimizer.lr**", "changing it", "lr = 0.001", "plan small"]),
    "a default": (put("{ ste"), ["**budget.steps**", "budget.steps = 20 steps"]),
    "a component": (put("decod"), ["**decoder** · model", "- `layers`:"]),
    "a let": (put("dim = wid"), ["**let width**", "How wide.", "let width = 64"]),
    "a param": (put("lr = pe"), ["**param peak**", "Rate(1e-6 .. 1e-2) = 1e-3"]),
    "a name of the library": (put("{\n  cluster   = cpu_ho"), ["cpu_host** · std:clusters", "devices_per_node = 2"]),
    "an entry": (put("source = p"), ["**entry py**", "python_source"]),
    "a node's field": (put("spl"), ["**eval.held.split**", "eval.held.split = 1%"]),
}  # fmt: skip


@pytest.mark.parametrize(("text", "said"), CASES.values(), ids=list(CASES))
def test_a_word_is_explained(tmp_path: Path, text: str, said: list[str]) -> None:
    found = hovered(tmp_path, text)
    assert [part for part in said if part not in found] == [], found


def test_an_assertion_shows_the_value_that_it_reads(tmp_path: Path) -> None:
    text = PLAN.replace("  eval held", f"  assert model.para{CURSOR}ms > 0\n  eval held")
    assert "model.params = " in hovered(tmp_path, text)


@pytest.mark.parametrize(
    ("written", "said"),
    [("4Ki tokens", "`4Ki tokens` is 4096 tokens"), ("2h", "`2h` is 7200"), ("1M", "`1M` is 1_000_000"), ("17", "")],
)
def test_a_number_is_written_out_where_that_says_more(tmp_path: Path, written: str, said: str) -> None:
    found = hovered(tmp_path, f"forge 1\nlet x = {written[0]}{CURSOR}{written[1:]}\n")
    assert found.startswith(said)
    assert bool(found) == bool(said)


def test_a_computed_name_shows_its_value(tmp_path: Path) -> None:
    text = PLAN.replace("let width = 64", "let half = 32\nlet width = half * 2 + 64")
    assert "Its value is `128`." in hovered(tmp_path, text.replace("dim = width", f"dim = wid{CURSOR}th"))
    assert "Its value is" not in hovered(tmp_path, text.replace("= half", f"= ha{CURSOR}lf"))


def test_a_field_of_a_profile_shows_its_value_in_the_profile(tmp_path: Path) -> None:
    text = PLAN.replace("  eval held", f"  profile quick {{\n    budget.ste{CURSOR}ps = 7 steps\n  }}\n\n  eval held")
    assert "budget.steps = 7 steps" in hovered(tmp_path, text)


def test_a_lint_that_is_allowed_is_explained(tmp_path: Path) -> None:
    text = PLAN.replace("plan small", f"# forge: allow no-check{CURSOR}point\nplan small")
    assert "**no-checkpoint** · lint" in hovered(tmp_path, text)


def test_nothing_is_said_of_nothing(tmp_path: Path) -> None:
    assert hovered(tmp_path, PLAN.replace("{\n  cluster", f"{{\n {CURSOR} cluster")) == ""
    assert hovered(tmp_path, PLAN.replace("## How wide.", f"## How w{CURSOR}ide.")) == ""


def test_the_field_that_is_being_written_is_marked(tmp_path: Path) -> None:
    found = signature_help(*at_cursor(tmp_path, PLAN.replace("lr = peak", f"lr = peak, weight_decay = {CURSOR}")))
    assert found is not None
    (signature,) = found.signatures
    assert signature.label.startswith("adamw { lr: number")
    assert signature.parameters is not None
    assert found.active_parameter is not None
    assert str(signature.parameters[found.active_parameter].label).startswith("weight_decay")
    assert signature_help(*at_cursor(tmp_path, f"forge 1\nlet x = max({CURSOR}")) is not None
    assert signature_help(*at_cursor(tmp_path, f"forge 1\n{CURSOR}")) is None


def test_computed_values_stand_beside_what_they_follow_from(tmp_path: Path) -> None:
    snapshot, _, _ = at_cursor(tmp_path, PLAN + CURSOR, analysed=True)
    lines = PLAN.splitlines()
    hints = {lines[hint.position.line].split()[0]: hint for hint in inlay_hints(snapshot, 0, len(PLAN))}
    said = {name: str(hint.label) for name, hint in hints.items()}
    # 2·(4·64² + 3·64·ffn + 2·64) + 2·257·64 + 64, with ffn = 256 by default of 8/3·dim in multiples of 256
    assert said["batch"] == "accumulation 2 · 2 data ranks"
    assert said["optimizer"] == "1.25 MiB of state on the fullest rank"
    assert said["cluster"] == "2 devices · dp_shard 2"
    assert said["model"].endswith("active")
    assert hints["batch"].position.character == len(lines[hints["batch"].position.line])
    snapshot.text = PLAN + "\n"
    assert inlay_hints(snapshot, 0, len(PLAN)) == []


def test_what_auto_came_to_is_shown(tmp_path: Path) -> None:
    text = PLAN.replace("vocab = 257", "vocab = 257, pad_vocab = auto, attention = auto").replace(
        "  budget", "  mesh.dp_shard = auto\n  budget"
    )
    snapshot, _, _ = at_cursor(tmp_path, text + CURSOR, analysed=True)
    lines = text.splitlines()
    found = {
        lines[hint.position.line][: hint.position.character].split()[-3]: hint.label
        for hint in inlay_hints(snapshot, 0, len(text))
        if str(hint.label).startswith("= ")
    }
    assert found == {"pad_vocab": "= 257", "mesh.dp_shard": "= 2"}


@pytest.mark.parametrize(("encoding", "character"), [("utf-16", 36), ("utf-8", 44), ("utf-32", 32)])
def test_a_word_behind_wide_characters_is_found_in_every_encoding(
    tmp_path: Path, encoding: str, character: int
) -> None:
    """C005."""
    text = PLAN.replace("  budget", '  checkpoint = { path = "𐐀𐐀𐐀𐐀", keep = 3 }\n  budget')
    snapshot, _, workspace = at_cursor(tmp_path, text + CURSOR, analysed=True)
    snapshot.encoding = encoding
    line = text[: text.index("𐐀")].count("\n")
    found = hover(snapshot, snapshot.offset(lsp.Position(line, character)), workspace)
    assert found is not None
    assert found.range is not None
    assert found.range.start == lsp.Position(line, character)
    assert isinstance(found.contents, lsp.MarkupContent)
    assert found.contents.value.startswith("**checkpoint.keep**")


def words(folder: Path, text: str) -> list[tuple[str, str]]:
    """Each word with its kind."""
    snapshot, _, _ = at_cursor(folder, text + CURSOR)
    data = semantic_tokens(snapshot).data
    lines, line, character, found = text.split("\n"), 0, 0, []
    for i in range(0, len(data), 5):
        step, shift, length, kind, _ = data[i : i + 5]
        line, character = line + step, shift + (0 if step else character)
        found.append((lines[line][character : character + length], TYPES[kind]))
    return found


def test_every_word_has_its_kind(tmp_path: Path) -> None:
    found = dict(words(tmp_path, PLAN))
    expected = {
        "plan": "keyword", "small": "class", "width": "variable", "peak": "parameter", "decoder": "type",
        "optimizer": "property", "lr": "property", "20": "number", "byte": "type", "Rate": "type",
        '"std:models"': "string", "## How wide.": "comment", "eval": "keyword", "held": "property", "..": "operator",
    }  # fmt: skip
    assert {word: found.get(word) for word in expected} == expected


def test_a_keyword_that_is_a_name_is_shown_as_one(tmp_path: Path) -> None:
    """C019."""
    text = "forge 1\nlet test = 2\nplan p {\n  seed = test\n  eval plan { source = sweep }\n}\n"
    found = words(tmp_path, text)
    assert ("test", "keyword") not in found
    assert found.count(("test", "variable")) == 2
    assert ("plan", "property") in found


def test_words_inside_of_a_text_have_their_kinds(tmp_path: Path) -> None:
    text = 'forge 1\nlet a = 1\nplan p {\n  checkpoint = { path = "runs/${a}/${plan.name}" }\n}\n'
    found = words(tmp_path, text)
    at = found.index(("path", "property"))
    assert [piece for piece in found[at + 1 :] if piece[1] != "operator"] == [
        ('"runs/${', "string"), ("a", "variable"), ("}/${", "string"),
        ("plan", "property"), (".", "string"), ("name", "property"), ('}"', "string"),
    ]  # fmt: skip


def test_where_a_grammar_colours_too_only_words_are_told(tmp_path: Path) -> None:
    snapshot, _, _ = at_cursor(tmp_path, PLAN + CURSOR)
    whole, over = (semantic_tokens(snapshot, augments).data for augments in (False, True))
    kinds = [{TYPES[kind] for kind in data[3::5]} for data in (whole, over)]
    assert kinds[0] - kinds[1] == {"string", "number", "comment", "operator"}
    assert kinds[1] >= {"keyword", "property", "type", "variable", "parameter", "class"}
