"""Does `forgeplan run` compile what it is given, start it or join it, and refuse what it cannot run?"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.plan.verify import read
from forgeplan.runtime import launch as launching
from forgeplan.runtime import signals
from forgeplan.runtime.options import RunOptions
from tests.cli.commands import run_process
from tests.cli.conftest import Give

Launched = tuple[ExecutionPlan, RunOptions]


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[Launched]:
    """What would have been launched."""
    found: list[Launched] = []

    def launch(plan: bytes, options: RunOptions) -> int:
        found.append((read(plan), options))
        return 75

    monkeypatch.delenv("RANK", raising=False)
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    monkeypatch.setattr(launching, "launch", launch)
    return found


def test_a_plan_file_is_compiled_for_the_processes_asked_for(give: Give, launched: list[Launched]) -> None:
    assert give("run", "small.forge", "--nproc", "4", "--profile", "short").exit_code == 75
    ((plan, options),) = launched
    assert (plan.name, plan.mesh.world, plan.job.cluster.nodes) == ("small@short", 4, 1)
    command = "forgeplan prove small.forge --profile short --set cluster.nodes=1 --set cluster.devices_per_node=4"
    assert options == RunOptions(project=str(Path.cwd()), prove=command)


@pytest.mark.parametrize(("text", "resume"), [("auto", "auto"), ("none", "none"), ("step=300", 300)])
def test_where_to_go_on_is_handed_over(give: Give, launched: list[Launched], text: str, resume: object) -> None:
    give("run", "small.forge", "--resume", text, "--take-over")
    given = RunOptions(resume=resume, take_over=True, project=str(Path.cwd()), prove="forgeplan prove small.forge")  # type: ignore[arg-type]
    assert launched[0][1] == given


@pytest.mark.parametrize("text", ["later", "step=", "step=-1", "300"])
def test_a_misspelt_resume_is_a_usage_error(give: Give, launched: list[Launched], text: str) -> None:
    said = give("run", "small.forge", "--resume", text)
    assert said.exit_code == 2
    assert f"'{text}' is none of `auto`, `none`, `step=N`" in said.err
    assert not launched


def test_a_compiled_plan_is_run_as_it_is(give: Give, launched: list[Launched]) -> None:
    give("compile", "small.forge")
    give("run", "small.plan.json")
    assert launched[0][0].name == "small"


def test_a_plan_in_its_run_directory_is_run_where_that_lies(
    give: Give, launched: list[Launched], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "runs" / "small").mkdir(parents=True)
    give("compile", "small.forge", "-o", "runs/small/plan.json")
    monkeypatch.chdir("runs")
    give("run", "small/plan.json")
    assert launched[0][1].project == str(folder.resolve())


def test_a_compiled_plan_cannot_be_varied(give: Give, launched: list[Launched]) -> None:
    give("compile", "small.forge")
    said = give("run", "small.plan.json", "--nproc", "1")
    assert said.exit_code == 2
    assert "small.plan.json is compiled" in said.err
    assert not launched


def test_a_plan_with_faults_is_not_run(give: Give, launched: list[Launched]) -> None:
    said = give("run", "faulty.forge")
    assert said.exit_code == 1
    assert "error[FP0501]" in said.err
    assert not launched


def test_a_dry_run_says_what_would_happen(give: Give, folder: Path) -> None:
    said = give("run", "small.forge", "--dry-run")
    assert said.exit_code == 0
    assert "processes  2 on 1 × cpu: dp_shard 2" in said.out
    assert not (folder / "runs").exists()


def test_an_altered_plan_is_refused(give: Give, folder: Path) -> None:
    give("compile", "small.forge")
    path = folder / "small.plan.json"
    path.write_text(path.read_text().replace('"steps": 4', '"steps": 5'))
    said = give("run", "small.plan.json", "--dry-run")
    assert said.exit_code == 1
    assert said.err.startswith("error[FP1001]: the plan was altered")


def test_a_rank_of_a_launched_job_joins_it_and_compiles_only_when_asked(
    give: Give, monkeypatch: pytest.MonkeyPatch
) -> None:
    from forgeplan.runtime import run

    asked: list[Callable[[], bytes]] = []

    def run_worker(read_plan: Callable[[], bytes], options: RunOptions, received: Any) -> int:
        asked.append(read_plan)
        return 0

    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setattr(run, "run_worker", run_worker)
    monkeypatch.setattr(signals, "install", lambda: None)
    assert give("run", "faulty.forge").exit_code == 0
    assert give("run", "small.forge").exit_code == 0
    with pytest.raises(SystemExit) as ended:
        asked[0]()
    assert ended.value.code == 1
    assert read(asked[1]()).name == "small"


def test_a_plan_is_trained_and_trained_on(folder: Path) -> None:
    first = run_process("run", "small.forge", "--nproc", "1", "--profile", "short", folder=folder)
    again = run_process("run", "small.forge", "--nproc", "1", "--profile", "short", folder=folder)
    assert (first.exit_code, again.exit_code) == (0, 0), first.err + again.err
    assert "step 2/2" in first.out
    assert "nothing to do: all 2 steps are made" in again.out
