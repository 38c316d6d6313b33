"""How does a checkpoint's content reach the tensors and counters of a run, whatever layout either has?"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import fields
from torch import Tensor
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.metadata import TensorStorageMetadata
from torch.distributed.checkpoint.state_dict_loader import load as load_distributed

from forgeplan.diagnostics.refusal import Refusal
from forgeplan.diagnostics.refusals import CHECKSUM, STATE_MISSING
from forgeplan.runtime.checkpoint import layout
from forgeplan.runtime.checkpoint.storage import METADATA, Planner, Reader
from forgeplan.runtime.checkpoint.unpickle import read_metadata
from forgeplan.runtime.files import read_json_object
from forgeplan.runtime.ranks import Ranks
from forgeplan.runtime.state import TrainState

_NAMED = 5


def load_tensors(
    path: Path,
    tensors: Mapping[str, Tensor],
    ranks: Ranks,
    *,
    part: str = "",
    real_rows: Mapping[str, int] = {},
) -> None:
    """Fill `tensors` in place from a checkpoint; collective. Resharding is implied.

    Of a tensor named in `real_rows` the rows behind so many are padding, which may be more or less in the checkpoint.

    Every tensor of the checkpoint whose name starts with `part` must be asked for, by some rank, and every tensor asked
    for be there with its global shape: Refusal FP1015 otherwise, on every rank before anything changes. FP1014 for a
    pickle.
    """
    wanted = {name: tuple(t.shape) for name, t in tensors.items()}
    stored = ranks.together(lambda: {n: s for n, s in stored_shapes(path).items() if n.startswith(part)})
    # The stages of a pipeline ask for different ones.
    unasked = set.intersection(*map(set, ranks.from_all(lambda: sorted(stored.keys() - wanted.keys()))))

    def compare() -> dict[str, tuple[int, ...]]:
        repadded = {
            name: wanted[name]
            for name, rows in real_rows.items()
            if name in wanted
            and stored.get(name, wanted[name]) != wanted[name]
            # Rows may be more or fewer, and nothing else.
            and stored[name][1:] == wanted[name][1:]
            and stored[name][0] >= rows
        }
        _compare(path, wanted, stored | repadded, sorted(unasked))
        return repadded

    repadded = ranks.together(compare)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.distributed is disabled")
        try:
            load_distributed(
                dict(tensors),
                storage_reader=Reader(path / layout.TENSORS, repadded),
                planner=Planner(),
                no_dist=ranks.world == 1,
            )
        except CheckpointException as error:
            raise _unwrapped(error, path) from error


def stored_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Global shape of every tensor of a checkpoint, by name."""
    try:
        metadata = read_metadata(path / layout.TENSORS / METADATA)
    except OSError as error:
        raise Refusal(CHECKSUM, f"{path} cannot be read: {error.strerror or error}") from error
    return {
        name: tuple(entry.size)
        for name, entry in metadata.state_dict_metadata.items()
        if isinstance(entry, TensorStorageMetadata)
    }


def load_state(path: Path) -> TrainState:
    """The counters of a checkpoint. Refusal FP1015 if one is missing, unknown or no number."""
    found = read_json_object(path / layout.STATE)
    names = {f.name: f for f in fields(TrainState)}
    if found is None or set(found) != set(names):
        raise _state_refused(path, "the counters are not " + ", ".join(names))
    for name, value in found.items():
        whole = isinstance(names[name].default, int)
        if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)) or value < 0:
            raise _state_refused(path, f"{name} is {value!r}")
    return TrainState(**found)


def load_data_record(path: Path) -> dict[str, Any]:
    """What the data was when the checkpoint was written."""
    found = read_json_object(path / layout.DATA)
    if found is None:
        raise Refusal(STATE_MISSING, f"{path / layout.DATA} is missing, or no JSON object")
    return found


def load_plan(path: Path) -> bytes:
    """plan.json of a checkpoint, as it was written."""
    try:
        return (path / layout.PLAN).read_bytes()
    except OSError as error:
        raise Refusal(CHECKSUM, f"{path} cannot be read: {error.strerror or error}") from error


def _compare(
    path: Path, wanted: Mapping[str, tuple[int, ...]], stored: Mapping[str, tuple[int, ...]], surplus: list[str]
) -> None:
    missing = sorted(set(wanted) - set(stored))
    other = [n for n in sorted(set(wanted) & set(stored)) if wanted[n] != stored[n]]
    if not (missing or surplus or other):
        return
    parts = []
    if missing:
        parts.append(f"it lacks {len(missing)} of {len(wanted)} states ({_some(missing)})")
    if other:
        shapes = [f"{n} is {_shape(stored[n])} there and {_shape(wanted[n])} in the plan" for n in other]
        parts.append(f"{len(other)} shapes differ ({_some(shapes)})")
    if surplus:
        parts.append(f"it holds {len(surplus)} states that the plan does not have ({_some(surplus)})")
    raise Refusal(
        STATE_MISSING,
        f"{path} does not fit this plan: " + "; ".join(parts),
        "a checkpoint is resumed by the plan that wrote it; its own plan is in the checkpoint's plan.json",
    )


def _some(names: list[str]) -> str:
    rest = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f", and {rest} more" if rest > 0 else "")


def _shape(shape: tuple[int, ...]) -> str:
    return "×".join(map(str, shape)) or "a scalar"


def _state_refused(path: Path, reason: str) -> Refusal:
    return Refusal(STATE_MISSING, f"{path / layout.STATE} cannot be resumed: {reason}")


def _unwrapped(error: CheckpointException, path: Path) -> Exception:
    rank, (cause, _) = next(iter(sorted(error.failures.items())))
    if isinstance(cause, Refusal):
        return cause
    return Refusal(CHECKSUM, f"{path} cannot be read on rank {rank}: {cause}")
