"""Does a checkpoint go on where another layout pads the vocabulary otherwise?"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from forgeplan.diagnostics.refusal import Refusal
from forgeplan.runtime.checkpoint.load import load_tensors
from forgeplan.runtime.checkpoint.save import Saver
from forgeplan.runtime.executor import build, named_tensors, real_rows
from forgeplan.runtime.optim.optimizer import build_optimizer
from forgeplan.runtime.ranks import Ranks
from forgeplan.runtime.state import TrainState
from tests.runtime.tiny import decoder, execution_plan

CPU = torch.device("cpu")


def state_of(pad_vocab: int, seed: int, vocab: int = 29) -> tuple[dict[str, torch.Tensor], dict[str, int]]:
    plan = execution_plan(model=decoder(vocab=vocab, pad_vocab=pad_vocab), seed=seed)
    bundle = build(plan, CPU)
    tensors = named_tensors(bundle, build_optimizer(bundle))
    return tensors, real_rows(plan, tensors)


@pytest.mark.parametrize(("saved", "loaded"), [(32, 29), (30, 32), (29, 30)])
def test_real_rows_are_restored_whatever_the_padding(saved: int, loaded: int, tmp_path: Path) -> None:
    first, _ = state_of(saved, seed=1)
    first["optim.head.weight.exp_avg"].fill_(0.5)
    path = Saver(tmp_path, b"{}", {}, None, Ranks()).save(first, TrainState(step=1))
    second, rows = state_of(loaded, seed=2)
    load_tensors(path, second, Ranks(), real_rows=rows)
    for name, tensor in second.items():
        real = slice(None, 29) if name in rows and tensor.dim() else ...
        assert torch.equal(tensor[real], first[name][real]), name


def test_another_vocabulary_is_no_padding(tmp_path: Path) -> None:
    first, _ = state_of(29, seed=1)
    path = Saver(tmp_path, b"{}", {}, None, Ranks()).save(first, TrainState(step=1))
    second, rows = state_of(40, seed=1, vocab=31)
    with pytest.raises(Refusal) as refused:
        load_tensors(path, second, Ranks(), real_rows=rows)
    assert refused.value.code.id == "FP1015"


def test_another_width_is_no_padding(tmp_path: Path) -> None:
    """Only rows may be more or less; half-filled ones would go unnoticed."""
    path = Saver(tmp_path, b"{}", {}, None, Ranks()).save({"model.head.weight": torch.ones(6, 4)}, TrainState(step=1))
    with pytest.raises(Refusal) as refused:
        load_tensors(path, {"model.head.weight": torch.zeros(8, 5)}, Ranks(), real_rows={"model.head.weight": 6})
    assert refused.value.code.id == "FP1015"
    assert "6×4" in refused.value.message
