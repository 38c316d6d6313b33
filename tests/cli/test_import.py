"""Does `forgeplan import` write a plan and a report, and say in one line what is no configuration?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import validate

from tests.cli.conftest import Give
from tests.house.tree import ROOT

SCHEMA = json.loads((ROOT / "docs/schemas/import.schema.json").read_text(encoding="utf-8"))

SMALL = """
[model]
dim = 64
n_layers = 2
n_heads = 4
vocab_size = 256
max_seq_len = 128

[train]
batch_size = 2
seq_len = 128
max_steps = 10
compile_model = false

[scheduler]
warmup_steps = 2

[distributed]
dp_shard = 2
"""


@pytest.fixture
def small(folder: Path) -> Path:
    path = folder / "tiny.toml"
    path.write_text(SMALL, encoding="utf-8")
    return path


def test_a_plan_is_written_and_compiles(give: Give, small: Path, folder: Path) -> None:
    said = give("import", "tiny.toml", "--cluster", "cpu_host")
    assert (said.exit_code, said.err) == (0, "")
    assert "tiny.forge has plan tiny: 164,160 parameters on 2 devices, 512 tokens a step" in said.out
    assert "train.max_steps = 10  →  budget.steps = 10 steps" in said.out
    assert give("fmt", "--check", "tiny.forge").exit_code == 0
    assert give("compile", "tiny.forge").exit_code == 0


def test_a_file_is_never_written_over_unless_it_is_named(give: Give, small: Path, folder: Path) -> None:
    (folder / "tiny.forge").write_text("mine", encoding="utf-8")
    said = give("import", "tiny.toml")
    assert said.exit_code == 2
    assert "tiny.forge exists, and is left as it is" in said.err
    assert (folder / "tiny.forge").read_text(encoding="utf-8") == "mine"
    assert give("import", "tiny.toml", "-o", "tiny.forge").exit_code == 0


def test_a_plan_on_standard_output_leaves_the_report_to_the_other(give: Give, small: Path, folder: Path) -> None:
    said = give("import", "tiny.toml", "-o", "-")
    assert said.exit_code == 0
    assert "plan tiny {" in said.out
    assert "taken" in said.err
    assert "taken" not in said.out
    assert not (folder / "tiny.forge").exists()


def test_the_report_is_json_on_request(give: Give, small: Path) -> None:
    shown = json.loads(give("import", "tiny.toml", "--json", "--cluster", "cpu_host").out)
    validate(shown, SCHEMA)
    assert (shown["written"], shown["format"], shown["plan"]) == ("tiny.forge", "kempnerforge", "tiny")
    assert shown["facts"] == {"params": 164_160, "devices": 2, "tokens_per_step": 512}
    assert {entry["key"]: entry["outcome"] for entry in shown["keys"]}["train.seq_len"] == "taken"


def test_nothing_is_written_of_a_model_without_an_equivalent(give: Give, folder: Path) -> None:
    (folder / "config.json").write_text('{"model_type": "qwen2"}', encoding="utf-8")
    said = give("import", "config.json")
    assert said.exit_code == 1
    assert "no plan can be made\n  qwen2: its biases" in said.err
    assert list(folder.glob("qwen2*")) == list(folder.glob("config.forge")) == []
    shown = json.loads(give("import", "config.json", "--json").out)
    validate(shown, SCHEMA)
    assert (shown["written"], shown["plan"], shown["facts"]) == (None, None, None)


def test_a_layout_that_does_not_fit_together_is_written_with_its_errors(give: Give, small: Path, folder: Path) -> None:
    small.write_text(SMALL + "tp = 3\n", encoding="utf-8")
    said = give("import", "tiny.toml")
    assert said.exit_code == 1
    assert "error[FP0412]" in said.err
    assert "tiny.forge is written" in said.err
    assert "plan tiny {" in (folder / "tiny.forge").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.toml", b"[model]\ndim = = 3\n", "a.toml: this is no TOML: invalid value (at line 2, column 7)"),
        ("a.json", b'{"model_type": "llama",}', "a.json:1:24: this is no JSON: "),
        ("a.json", b'{"model_type": NaN}', "a.json: NaN is no number"),
        ("a.json", b"[1, 2]", "a.json: this is no TOML"),
        ("a.toml", b"x = 1\n", "a.toml: its keys do not tell whose configuration this is"),
        ("a.toml", b"", "a.toml: its keys do not tell whose configuration this is"),
        ("a.toml", b"[model]\ndim = 4\x00\n", "a.toml: this is no TOML"),
        ("a.toml", b"\xff\xfe\x00", "a.toml is not UTF-8 text: byte 0 cannot be read"),
        ("a.toml", b"# " + b"x" * (1 << 20) + b"\n", "a.toml has more than 1,048,576 characters"),
        ("a.json", b'{"a": ' + b"[" * 100_000, "a.json: tables are nested too deep"),
        ("a.json", b'{"model_type": ' * 40 + b"1" + b"}" * 40, "tables are nested deeper than 32"),
        ("a.toml", b"[train]\nmax_steps = [1]\n[distributed]\n", "a.toml: train.max_steps is [1], and must be a whole"),
        ("a.toml", b"train = 3\ndata = 4\n", "a.toml: train is 3, and must be a table"),
    ],
)
def test_what_is_no_configuration_is_one_message(
    give: Give, folder: Path, name: str, data: bytes, message: str
) -> None:
    (folder / name).write_bytes(data)
    said = give("import", name)
    assert (said.exit_code, said.out) == (2, "")
    assert message in " ".join(said.err.split())
    assert "Traceback" not in said.err


def test_what_the_command_line_asks_for_must_exist(give: Give, small: Path) -> None:
    for arguments, message in {
        ("missing.toml",): "there is no file missing.toml",
        (".",): "is a folder",
        ("tiny.toml", "--cluster", "h100_nod"): "did you mean `h100_node`?",
        ("tiny.toml", "--nodes", "0"): "0 is not in the range",
        ("tiny.toml", "--from", "megatron"): "'megatron' is not one of",
    }.items():
        said = give("import", *arguments)
        assert said.exit_code == 2, arguments
        assert message in said.err


def test_the_format_can_be_named(give: Give, folder: Path) -> None:
    (folder / "a.toml").write_text('[model]\nname = "llama3"\nflavor = "debugmodel"\n', encoding="utf-8")
    assert give("import", "a.toml").exit_code == 2
    assert give("import", "a.toml", "--from", "torchtitan").exit_code == 0
