"""What happens when the files are not what they were, or cannot be written?"""

from __future__ import annotations

from pathlib import Path

from forgeplan.runtime.checkpoint import layout
from tests.faults.processes import finish, losses, records, start
from tests.faults.small_plan import plan_bytes


def test_one_flipped_bit_is_named_and_the_run_goes_on_from_the_checkpoint_before(tmp_path: Path) -> None:
    plan = plan_bytes(ranks=2, steps=12, every=4)
    assert finish(plan, tmp_path).exit_code == 0
    expected = losses(tmp_path / "runs/small")
    shard = tmp_path / "runs/small/checkpoints/step-12/tensors/__1_0.distcp"
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 4
    shard.write_bytes(data)
    ended = finish(plan, tmp_path)
    assert ended.exit_code == 0, ended.err
    assert "FP1013: the checkpoint of step 12 is damaged and was passed over: tensors/__1_0.distcp" in ended.out
    assert "resume from step 8: the newest good checkpoint" in ended.out
    assert losses(tmp_path / "runs/small") == expected
    ended = finish(plan, tmp_path, resume=12)
    assert ended.exit_code == 0, "the damaged checkpoint was not replaced by the new one"


def test_a_refusal_is_one_message_however_many_ranks_there_are(tmp_path: Path) -> None:
    alone, plan = plan_bytes(steps=4), plan_bytes(ranks=2, steps=4)
    assert finish(alone, tmp_path).exit_code == 0
    ended = finish(plan, tmp_path, resume=3)
    assert ended.exit_code == 1
    assert ended.err == (
        "error[FP1012]: the checkpoint of step 3 in runs/small/checkpoints does not exist\n  help: steps there: 4\n"
    )
    ended = finish(alone, tmp_path, resume="none")
    assert ended.exit_code == 1
    assert ended.err.startswith("error[FP1011]: resume = none would write over")
    assert ended.err.count("FP1011") == 1


def test_a_folder_that_cannot_be_written_is_outlived_once_and_ends_the_run_then(tmp_path: Path) -> None:
    plan = plan_bytes(steps=40, every=10)
    (tmp_path / "runs/small").mkdir(parents=True)
    (tmp_path / "runs/small/checkpoints").write_text("in the way")
    ended = start(plan, tmp_path).wait()
    assert ended.exit_code == 1
    assert "warning: step 10 was not saved" in ended.out
    assert "error[FP1019]: step 20 was not saved" in ended.err
    assert [r["step"] for r in records(tmp_path / "runs/small")] == list(range(1, 21))
    (tmp_path / "runs/small/checkpoints").unlink()
    assert finish(plan, tmp_path).exit_code == 0
    assert layout.list_steps(tmp_path / "runs/small/checkpoints") == [20, 30, 40]
