"""Do bash, zsh and fish complete what can be written next: commands, plan files, and what is in them?"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

from forgeplan.cli.commands.completion import command
from forgeplan.cli.main import forgeplan
from forgeplan.cli.shells import SHELLS
from tests.cli.commands import ROOT

BIN = Path(sys.executable).parent
PLAN = """forge 1

from "std:clusters" import cpu_host
import "std:models" as models

## How fast.
param peak: Rate(0 .. 1) = 3e-3

plan small {
  cluster   = cpu_host
  model     = models.debug
  sources   = { counter = synthetic { noise = 10% } }
  batch     = { accumulation = 2, micro = 4 sequences, length = 32 tokens }
  optimizer = adamw { lr = peak }
  budget    = { steps = 40 steps }
  profile smoke { budget = { steps = 2 steps } }
}
plan other extends small {
  profile long { budget = { steps = 90 steps } }
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "two.forge").write_text(PLAN, encoding="utf-8")
    (tmp_path / "broken.forge").write_text("forge 1\nplan x {\n", encoding="utf-8")
    (tmp_path / "notes.txt").touch()
    (tmp_path / "two.plan.json").touch()
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans" / "a.forge").touch()
    (tmp_path / ".hidden").mkdir()
    return tmp_path


def _environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(ROOT), **more}


def _offered(line: str, folder: Path, shell: str = "fish") -> dict[str, str]:
    """Candidates for the end of a line, with their help."""
    done = subprocess.run(
        [sys.executable, "-m", "forgeplan"],
        cwd=folder,
        env=_environment(COMP_WORDS=line, _FORGEPLAN_COMPLETE=f"{shell}_complete"),
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return dict(candidate.split("\t") for candidate in done.stdout.splitlines() if candidate)


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("forgeplan comp", {"compile", "completion"}),
        ("forgeplan lint ", {"two.forge", "broken.forge", "plans/"}),
        ("forgeplan lint two.forge pl", {"plans/"}),
        ("forgeplan lint plans/", {"plans/a.forge"}),
        ("forgeplan lint nowhere/", set()),
        ("forgeplan run t", {"two.forge", "two.plan.json"}),
        ("forgeplan explain FP0412", {"FP0412"}),
        ("forgeplan explain unusual-", {"unusual-rate"}),
        ("forgeplan explain two.forge --plan ", {"small", "other"}),
        ("forgeplan explain two.forge --profile ", {"smoke", "long"}),
        ("forgeplan explain two.forge --plan small --profile ", {"smoke"}),
        ("forgeplan explain two.forge optimizer.", {f"optimizer.{f}" for f in ("lr", "betas", "eps", "weight_decay",
                                                                              "decay_embeddings")}),
        ("forgeplan run two.forge --set pea", {"peak="}),
        ("forgeplan run two.forge --set mod", {"model."}),
        ("forgeplan run two.forge --set optimizer.l", {"optimizer.lr="}),
        ("forgeplan run two.forge --set model.tie=", {"model.tie=true", "model.tie=false"}),
        ("forgeplan run two.forge --set model.attention=f", {"model.attention=flash", "model.attention=flex"}),
        ("forgeplan run two.forge --set nothing=", set()),
        ("forgeplan run broken.forge --plan ", {"x"}),
        ("forgeplan run missing.forge --plan ", set()),
        ("forgeplan run --plan ", set()),
        ("forgeplan new --from q", {"quickstart"}),
        ("forgeplan compile two.forge --prof", {"--profile"}),
    ],
)  # fmt: skip
def test_what_can_be_written_next_is_offered(line: str, names: set[str], folder: Path) -> None:
    assert set(_offered(line, folder)) == names


def test_a_param_is_offered_with_its_doc_and_a_field_with_what_it_is(folder: Path) -> None:
    assert _offered("forgeplan run two.forge --set pe", folder) == {"peak=": "How fast."}
    assert _offered("forgeplan explain two.forge optimizer.lr", folder) == {"optimizer.lr": "peak learning rate"}


def test_completion_imports_nothing_that_only_training_needs(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "forgeplan"],
        cwd=folder,
        env=_environment(COMP_WORDS="forgeplan run two.forge --set s", _FORGEPLAN_COMPLETE="bash_complete"),
        capture_output=True,
        text=True,
    )
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "forgeplan" in imported
    assert not {"torch", "numpy", "networkx", "rich", "datasets"} & imported


def _shell(name: str, script: str, folder: Path) -> list[str]:
    program = shutil.which(name)
    if program is None:
        pytest.skip(f"{name} is not installed")
    options = {"bash": ["--norc", "--noprofile"], "zsh": ["-f"], "fish": ["--no-config"]}[name]
    done = subprocess.run(
        [program, *options, "-c", script],
        cwd=folder,
        env=_environment(HOME=str(folder)),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("line", "replies"),
    [
        ("forgeplan lint t", ["two.forge"]),
        ("forgeplan explain two.forge --plan ", ["small", "other"]),
        ("forgeplan run two.forge --set model.attention=fle", ["flex"]),  # bash begins a word anew behind `=`
        ("forgeplan run 'two.forge' --set pe", ["peak="]),
    ],
)
def test_bash_gets_the_words(line: str, replies: list[str], folder: Path) -> None:
    script = (
        "source <(forgeplan completion bash)\n"
        "complete -p forgeplan >&2\n"
        f'COMP_LINE="{line}"; COMP_POINT=${{#COMP_LINE}}\n'
        '_forgeplan_completion forgeplan; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    assert _shell("bash", script, folder) == replies


def test_zsh_gets_the_words_with_their_help(folder: Path) -> None:
    script = (
        "compdef() { print registered $2 }\n"
        '_describe() { print -r -- "${(j: :)@[4,-1]}"; print -rl -- ${(P)3} }\n'
        "source <(forgeplan completion zsh)\n"
        "words=(forgeplan run two.forge --set pe); CURRENT=5; _forgeplan_completion\n"
        "words=(forgeplan explain two.forge --plan ''); CURRENT=5; _forgeplan_completion\n"
        "_files() { print files }\n"
        "words=(forgeplan generate ''); CURRENT=3; _forgeplan_completion\n"
    )
    candidates = ["-S ", "peak=:How fast.", "", "small:", "other:"]
    assert _shell("zsh", script, folder) == ["registered forgeplan", *candidates, "files"]


def test_fish_gets_the_words_with_their_help(folder: Path) -> None:
    script = (
        "forgeplan completion fish | source\n"
        "complete --do-complete 'forgeplan run two.forge --set pe'\n"
        "complete --do-complete 'forgeplan explain two.forge --plan o'\n"
        "complete --do-complete 'forgeplan generate no'\n"
    )
    assert _shell("fish", script, folder) == ["peak=\tHow fast.", "other", "notes.txt"]


@pytest.mark.parametrize("name", forgeplan.list_commands(click.Context(forgeplan)))
def test_every_argument_that_is_a_plan_file_is_completed_as_one(name: str, folder: Path) -> None:
    """`import` takes files of other tools, which the shell offers by itself."""
    found = forgeplan.get_command(click.Context(forgeplan), name)
    assert found is not None
    for argument in found.params:
        if isinstance(argument, click.Argument) and argument.name in ("file", "files") and name != "import":
            offered = argument.shell_complete(click.Context(found), f"{folder}/t")
            assert f"{folder}/two.forge" in {item.value for item in offered}


def test_every_shell_that_is_offered_has_a_script() -> None:
    (argument,) = (parameter for parameter in command.params if parameter.name == "shell")
    assert set(argument.type.choices) == set(SHELLS)  # type: ignore[attr-defined]
