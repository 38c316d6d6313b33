"""Does everything that can go wrong around a command give one message and its exit code, never a traceback?"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from forgeplan.cli.failure import exit_code_of
from forgeplan.diagnostics.refusal import InternalError
from tests.cli.commands import PLAN, ROOT, run_process
from tests.cli.conftest import Give

COMMANDS = ["compile", "explain", "fmt", "graph", "lint", "run", "test"]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_missing_file_is_named(give: Give, name: str) -> None:
    said = give(name, "none.forge")
    assert (said.exit_code, said.out, said.err) == (2, "", "error: there is no file none.forge\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_folder_is_no_file(give: Give, folder: Path, name: str) -> None:
    (folder / "plans").mkdir()
    said = give(name, "plans")
    assert (said.exit_code, said.out) == (2, "")
    takes_folders = name == "fmt"
    expected = "error: the folder plans has no *.forge files" if takes_folders else "error: plans is a folder, not a "
    assert said.err.startswith(expected)


@pytest.mark.parametrize("name", COMMANDS)
def test_bytes_that_are_no_text_are_named(give: Give, folder: Path, name: str) -> None:
    (folder / "bytes.forge").write_bytes(b"forge 1\n\xff\n")
    said = give(name, "bytes.forge")
    assert (said.exit_code, said.out) == (2, "")
    assert said.err == "error: bytes.forge is not UTF-8 text: byte 8 cannot be read\n"


@pytest.mark.parametrize("name", ["compile", "explain", "graph", "run"])
@pytest.mark.parametrize(
    ("option", "message"),
    [
        (("--plan", "smal"), "there is no plan `smal`"),
        (("--profile", "shrt"), "there is no profile `shrt`"),
        (("--set", "peak=1"), "`peak` is neither a param of this file nor a field of a plan"),
        (("--set", "seed"), "`--set seed` is not of the form `path=value`"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_an_unknown_choice_is_named(give: Give, name: str, option: tuple[str, ...], message: str) -> None:
    said = give(name, "small.forge", *option)
    assert (said.exit_code, said.out) == (2, "")
    assert said.err.startswith(f"error[FP0209]: {message}")


@pytest.mark.parametrize("name", ["compile", "graph", "lint", "test"])
def test_a_compiled_plan_is_no_plan_file(give: Give, name: str) -> None:
    give("compile", "small.forge")
    said = give(name, "small.plan.json")
    assert (said.exit_code, said.out) == (2, "")
    assert said.err.startswith("error: small.plan.json is no plan file\n  help: ")


@pytest.mark.parametrize("name", ["compile", "explain", "graph", "run"])
def test_a_file_without_a_plan_is_named(give: Give, folder: Path, name: str) -> None:
    (folder / "empty.forge").write_text("forge 1\n")
    said = give(name, "empty.forge")
    assert said.exit_code == 2
    assert "error: empty.forge has no plan" in said.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("lnt",), "error: there is no command `lnt`; did you mean `lint`?"),
        (("small.forge",), "to train what a plan file says: forgeplan run small.forge"),
        (("lint",), "error: missing argument 'FILE...'"),
        (("lint", "--fast", "small.forge"), "error: no such option"),
        (("run", "small.forge", "--nproc", "0"), "error: invalid value for '--nproc'"),
        ((), "Usage: forgeplan"),
    ],
)
def test_a_wrong_command_line_says_what_is_right(give: Give, arguments: tuple[str, ...], message: str) -> None:
    said = give(*arguments)
    assert (said.exit_code, said.out) == (2, "")
    assert message in said.err


def test_output_that_cannot_be_written_is_named(give: Give, folder: Path) -> None:
    for target in ("none/out.json", "."):
        said = give("compile", "small.forge", "-o", target)
        assert said.exit_code == 2
        assert said.err.startswith(f"error: {target} ")
    assert sorted(path.name for path in folder.iterdir()) == ["faulty.forge", "small.forge", "two.forge"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_behind_standard_output_is_named(folder: Path) -> None:
    with open("/dev/full", "w") as full:
        ended = _process("explain", "small.forge", folder=folder, stdout=full)
    assert ended.wait(60) == 1
    assert ended.stderr is not None
    assert ended.stderr.read() == "error: no space left on device\n"


def test_a_reader_that_leaves_early_changes_nothing(folder: Path) -> None:
    for arguments, exit_code in ((("explain", "small.forge"), 0), (("lint", "faulty.forge"), 1)):
        process = _process(*arguments, folder=folder, stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert (process.wait(60), process.stderr.read()) == (exit_code, "")


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_changes_nothing(folder: Path, closed: str) -> None:
    (folder / "small.forge").write_text(PLAN)
    for arguments, exit_code in (("lint small.forge", 0), ("run --nproc 1 small.forge", 0), ("lint none.forge", 2)):
        process = subprocess.run(
            ["sh", "-c", f"{sys.executable} -m forgeplan {arguments} {closed}"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=200,
        )
        assert process.returncode == exit_code, process.stderr
        assert "internal error" not in process.stdout + process.stderr


def test_a_compiled_plan_of_nothing_but_brackets_is_refused(give: Give, folder: Path) -> None:
    (folder / "deep.json").write_text("[" * 200_000)
    said = give("run", "deep.json")
    assert said.exit_code == 1
    assert said.err.startswith("error[FP1001]: the file is no JSON")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_circle_of_links_is_no_file(give: Give, folder: Path, name: str) -> None:
    (folder / "a.forge").symlink_to(folder / "b.forge")
    (folder / "b.forge").symlink_to(folder / "a.forge")
    said = give(name, "a.forge")
    assert (said.exit_code, said.out) == (2, "")
    assert said.err.lower() == "error: a.forge cannot be read: too many levels of symbolic links\n"


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="needs a file without end")
def test_a_file_without_end_is_refused(give: Give) -> None:
    said = give("lint", "/dev/zero")
    assert (said.exit_code, said.out) == (2, "")
    assert said.err == "error: /dev/zero has more than 16,777,216 bytes, so it is no plan file\n"


def test_an_interrupted_command_ends_with_130(folder: Path) -> None:
    process = _process("fmt", "-", folder=folder, stdin=subprocess.PIPE)
    time.sleep(1.5)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130
    assert process.stderr is not None
    assert process.stderr.read().strip() == "interrupted"


def test_a_terminal_that_knows_few_characters_is_no_error(folder: Path) -> None:
    said = run_process("explain", "small.forge", folder=folder, PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert said.exit_code == 0, said.err
    assert "PROGRAM" in said.out


def test_no_colour_is_honoured_and_can_be_overruled(folder: Path) -> None:
    assert "\x1b[" not in run_process("lint", "faulty.forge", folder=folder, NO_COLOR="1").out
    assert "\x1b[" in run_process("lint", "faulty.forge", "--color", "always", folder=folder, NO_COLOR="1").out


def test_a_bug_is_called_one(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FORGEPLAN_TRACEBACK", raising=False)
    for error, what in (
        (InternalError("an edge without a node"), "an edge without a node"),
        (KeyError("layers.0"), "KeyError: 'layers.0'"),
        (AssertionError(), "AssertionError"),
    ):
        assert exit_code_of(error) == 3
        err = capsys.readouterr().err
        assert err.startswith(f"internal error: {what}\n  this is a bug in forgeplan; please report it")
        assert "Traceback" not in err


def test_the_traceback_of_a_bug_is_shown_to_who_asks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORGEPLAN_TRACEBACK", "1")
    with pytest.raises(KeyError) as caught:
        {}["layers.0"]
    assert exit_code_of(caught.value) == 3
    assert capsys.readouterr().err.startswith("Traceback (most recent call last):\n")


def _process(*arguments: str, folder: Path, **streams: object) -> subprocess.Popen[str]:
    (folder / "small.forge").write_text(PLAN)
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-m", "forgeplan", *arguments],
        cwd=folder,
        env=environment,
        text=True,
        stderr=subprocess.PIPE,
        **streams,  # type: ignore[call-overload]
    )
