"""Does what was saved come back bit for bit, and does everything else stay out?"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
from pathlib import Path

import pytest
import torch

from forgeplan.diagnostics.refusal import Refusal
from forgeplan.runtime.checkpoint import layout
from forgeplan.runtime.checkpoint.checksum import SummedStream
from forgeplan.runtime.checkpoint.choose import choose
from forgeplan.runtime.checkpoint.load import load_plan, load_state, load_tensors
from forgeplan.runtime.checkpoint.save import SaveFailed, Saver
from forgeplan.runtime.checkpoint.storage import _SummingFiles
from forgeplan.runtime.checkpoint.unpickle import read_metadata
from forgeplan.runtime.ranks import Ranks
from forgeplan.runtime.state import TrainState

ALONE = Ranks()


def tensors(seed: int = 0) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    names = ("model.embedding.weight", "optim.embedding.weight.exp_avg", "optim.embedding.weight.exp_avg_sq")
    return {name: torch.randn(7, 5, generator=generator) for name in names}


def save(folder: Path, step: int, keep: int | None = None, seed: int | None = None) -> Path:
    saver = Saver(folder, b'{"the": "plan"}\n', {"seed": 1}, keep, ALONE)
    return saver.save(
        tensors(step if seed is None else seed), TrainState(step=step, samples=8 * step, wall_seconds=0.5)
    )


def flip_a_bit(path: Path, offset: int) -> None:
    data = bytearray(path.read_bytes())
    data[offset] ^= 1
    path.write_bytes(data)


def test_a_file_that_is_forced_to_the_disk_is_whole_by_then(tmp_path: Path) -> None:
    """torch forces `fileno()` to the disk while the end of the file may still be in a buffer."""
    with (tmp_path / "shard").open("wb") as raw:
        stream = SummedStream(raw)
        stream.write(b"the last bytes")
        assert os.fstat(stream.fileno()).st_size == 14


def test_tensors_counters_and_plan_come_back_bit_for_bit(tmp_path: Path) -> None:
    path = save(tmp_path, 3)
    found = {name: torch.full((7, 5), float("nan")) for name in tensors()}
    load_tensors(path, found, ALONE)
    for name, tensor in tensors(3).items():
        assert torch.equal(found[name], tensor), name
    assert load_state(path) == TrainState(step=3, samples=24, wall_seconds=0.5)
    assert load_plan(path) == b'{"the": "plan"}\n'
    assert (tmp_path / "latest").read_text() == "step-3\n"


def test_no_absolute_path_reaches_the_files(tmp_path: Path) -> None:
    path = save(tmp_path, 1)
    for file in path.rglob("*"):
        assert not file.is_file() or str(tmp_path).encode() not in file.read_bytes(), file


@pytest.mark.parametrize("kept", [2, 3])
def test_retention_counts_complete_checkpoints_by_number_and_touches_nothing_else(tmp_path: Path, kept: int) -> None:
    (tmp_path / "step-6").mkdir()
    (tmp_path / "step-6" / "state.json").write_text("{}")
    (tmp_path / "old-step-5-copy").mkdir()
    (tmp_path / "step-x").mkdir()
    (tmp_path / "step-7.partial").mkdir()
    for step in (2, 4, 8, 900, 1000, 9900, 10_000):
        save(tmp_path, step, keep=kept)
    assert layout.list_steps(tmp_path) == [900, 1000, 9900, 10_000][-kept:]
    names = {p.name for p in tmp_path.iterdir()}
    assert {"step-6", "old-step-5-copy", "step-x", "step-7.partial"} <= names
    assert choose(tmp_path, "auto", ALONE).step == 10_000


def test_a_directory_without_marker_is_not_chosen_and_naming_it_says_incomplete(tmp_path: Path) -> None:
    save(tmp_path, 2)
    save(tmp_path, 6)
    (tmp_path / "step-6" / layout.MARKER).unlink()
    assert choose(tmp_path, "auto", ALONE).step == 2
    with pytest.raises(Refusal, match=r"FP1012.*step 6 .*incomplete") as refused:
        choose(tmp_path, 6, ALONE)
    assert refused.value.help == ("steps there: 2",)


def test_a_named_step_that_is_missing_is_an_error_that_lists_the_steps(tmp_path: Path) -> None:
    save(tmp_path, 900)
    save(tmp_path, 1000)
    with pytest.raises(Refusal, match=r"FP1012.*step 40 .*does not exist") as refused:
        choose(tmp_path, 40, ALONE)
    assert refused.value.help == ("steps there: 900, 1000",)


def test_resume_none_does_not_write_over_checkpoints(tmp_path: Path) -> None:
    assert choose(tmp_path, "none", ALONE).step is None
    save(tmp_path, 5)
    with pytest.raises(Refusal, match=r"FP1011.*step 5"):
        choose(tmp_path, "none", ALONE)


@pytest.mark.parametrize("file", ["tensors/__0_0.distcp", "tensors/.metadata", "state.json", "plan.json"])
def test_one_flipped_bit_is_found_named_and_passed_over(tmp_path: Path, file: str) -> None:
    save(tmp_path, 10)
    flip_a_bit(save(tmp_path, 20) / file, 9)
    decision = choose(tmp_path, "auto", ALONE)
    assert decision.step == 10
    assert "newest good" in decision.reason
    assert "step 20" in decision.notes[0]
    assert file in decision.notes[0]
    with pytest.raises(Refusal, match=f"FP1013.*{file}") as refused:
        choose(tmp_path, 20, ALONE)
    assert refused.value.help == ("other steps there: 10",)


def test_a_truncated_shard_is_found_by_its_size(tmp_path: Path) -> None:
    path = save(tmp_path, 10) / "tensors" / "__0_0.distcp"
    os.truncate(path, path.stat().st_size - 1)
    with pytest.raises(Refusal, match=r"FP1013: every checkpoint .* is damaged: .*bytes"):
        choose(tmp_path, "auto", ALONE)


def test_after_going_back_the_newest_is_the_one_committed_last(tmp_path: Path) -> None:
    for step in (10, 20, 15):
        save(tmp_path, step)
    assert choose(tmp_path, "auto", ALONE).step == 15
    save(tmp_path, 16, keep=2)
    assert layout.list_steps(tmp_path) == [15, 16]


def test_saving_a_step_again_replaces_it(tmp_path: Path) -> None:
    save(tmp_path, 4, seed=1)
    path = save(tmp_path, 4, keep=3, seed=2)
    found = tensors(0)
    load_tensors(path, found, ALONE)
    assert all(torch.equal(found[name], tensor) for name, tensor in tensors(2).items())
    assert sorted(p.name for p in tmp_path.iterdir()) == ["latest", "step-4"]


def test_a_state_that_is_absent_or_misshapen_is_refused_before_anything_changes(tmp_path: Path) -> None:
    path = save(tmp_path, 1)
    wanted = {**tensors(7), "optim.head.weight.exp_avg": torch.zeros(2)}
    before = {name: tensor.clone() for name, tensor in wanted.items()}
    with pytest.raises(Refusal, match=r"FP1015.*lacks 1 of 4 states \(optim.head.weight.exp_avg\)"):
        load_tensors(path, wanted, ALONE)
    assert all(torch.equal(wanted[name], before[name]) for name in wanted)
    misshapen = {**tensors(), "model.embedding.weight": torch.zeros(7, 6)}
    with pytest.raises(Refusal, match=r"FP1015.*model.embedding.weight is 7×5 there and 7×6 in the plan"):
        load_tensors(path, misshapen, ALONE)
    fewer = tensors()
    del fewer["model.embedding.weight"]
    with pytest.raises(Refusal, match=r"FP1015.*holds 1 states that the plan does not have"):
        load_tensors(path, fewer, ALONE)


def test_a_failed_save_leaves_the_earlier_checkpoint_and_nothing_half_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path, 1)
    real = os.fsync

    def full_disk(handle: int) -> None:
        if os.readlink(f"/proc/self/fd/{handle}").endswith(layout.MARKER):
            raise OSError(28, "No space left on device", layout.MARKER)
        real(handle)

    monkeypatch.setattr(os, "fsync", full_disk)
    with pytest.raises(SaveFailed, match=r"step 2 was not saved.*No space left on device"):
        save(tmp_path, 2)
    monkeypatch.undo()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["latest", "step-1"]
    assert choose(tmp_path, "auto", ALONE).step == 1


def test_a_full_disk_is_named_also_where_torch_tells_what_came_of_it(tmp_path: Path) -> None:
    class Full(io.BytesIO):
        def write(self, data: object) -> int:
            raise OSError(28, "No space left on device")

    def write_as_torch_does(stream: SummedStream) -> None:
        stream._raw = Full()
        with contextlib.suppress(OSError):
            stream.write(b"a tensor")
        raise RuntimeError("unexpected pos 704 vs 598")

    with (
        pytest.raises(OSError, match="No space left"),
        _SummingFiles().create_stream(tmp_path / "shard", "wb") as stream,
    ):
        write_as_torch_does(stream)  # type: ignore[arg-type]


def test_a_checkpoint_is_saved_though_the_name_of_the_newest_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "latest").mkdir()
    assert save(tmp_path, 1) == tmp_path / "step-1"
    assert save(tmp_path, 2, keep=1) == tmp_path / "step-2"
    assert choose(tmp_path, "auto", ALONE).step == 2


class Attack:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (os.system, ("touch attacked",))


def test_a_pickle_that_names_a_function_is_refused_and_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = save(tmp_path / "checkpoints", 1)
    (path / "tensors" / ".metadata").write_bytes(pickle.dumps(Attack()))
    with pytest.raises(Refusal, match=r"FP1014.*names posix.system"):
        load_tensors(path, tensors(), ALONE)
    assert not (tmp_path / "attacked").exists()


def test_metadata_that_declares_a_tensor_as_bytes_is_refused(tmp_path: Path) -> None:
    from torch.distributed.checkpoint.metadata import BytesStorageMetadata

    path = save(tmp_path, 1)
    metadata = read_metadata(path / "tensors" / ".metadata")
    metadata.state_dict_metadata["model.embedding.weight"] = BytesStorageMetadata()
    (path / "tensors" / ".metadata").write_bytes(pickle.dumps(metadata))
    with pytest.raises(Refusal, match=r"FP1014"):
        load_tensors(path, tensors(), ALONE)


def test_metadata_that_points_outside_the_checkpoint_is_refused(tmp_path: Path) -> None:
    path = save(tmp_path, 1)
    metadata = read_metadata(path / "tensors" / ".metadata")
    next(iter(metadata.storage_data.values())).relative_path = "../../secret"
    (path / "tensors" / ".metadata").write_bytes(pickle.dumps(metadata))
    with pytest.raises(Refusal, match=r"FP1014.*outside the checkpoint"):
        load_tensors(path, tensors(), ALONE)


@pytest.mark.parametrize("change", [{"step": "3"}, {"step": True}, {"samples": 1.5}, {"tokens": -1}, {"more": 1}])
def test_counters_that_are_no_numbers_are_refused(tmp_path: Path, change: dict[str, object]) -> None:
    import json

    path = save(tmp_path, 1)
    data = json.loads((path / "state.json").read_text())
    (path / "state.json").write_text(json.dumps({**data, **change}))
    with pytest.raises(Refusal, match=r"FP1015"):
        load_state(path)
