"""Do equal blocks share a graph, is nothing left out in silence, and does a budget decide what is kept?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch._inductor.config
from torch._dynamo.utils import counters

from forgeplan.diagnostics.refusal import Refusal
from forgeplan.runtime.data.microbatch import Microbatch
from forgeplan.runtime.executor import Bundle, build
from forgeplan.runtime.loss import forward_loss
from forgeplan.runtime.operations import compile as compile_module
from forgeplan.runtime.randomness import Randomness
from tests.runtime.tiny import decoder, execution_plan, moe, share

CPU = torch.device("cpu")
LAYERS = 6
AOT = {"backend": "aot_eager", "loss": False}
DROPPING = {"dropout": share("1/10").amount}


@pytest.fixture(autouse=True)
def no_graphs() -> Iterator[None]:
    counters.clear()
    yield
    torch._dynamo.reset()


def built(recompute: str | None = None, fields: dict[str, Any] | None = None, **options: Any) -> Bundle:
    model = decoder(layers=LAYERS, **(fields or {}))
    options = {"backend": "aot_eager", **options}
    return build(execution_plan(model=model, recompute=recompute, transforms={"compile": options}), CPU)


def trained(bundle: Bundle, first: int = 0, rows: int = 2) -> None:
    tokens = (torch.arange(16 * rows).view(rows, 16) + first) % 29
    batch = Microbatch(tokens, tokens.roll(-1, 1), None, None, first)
    found = forward_loss(bundle, batch, Randomness(7, first))
    found.objective(torch.tensor(16 * rows), 1).backward()


def num_graphs() -> int:
    return int(counters["stats"]["unique_graphs"])


@pytest.mark.parametrize("recompute", [None, "full", "selective", "every"])
@pytest.mark.parametrize("fields", [{}, DROPPING], ids=["plain", "dropout"])
def test_equal_blocks_share_a_graph_in_every_step(recompute: str | None, fields: dict[str, Any]) -> None:
    bundle = built(recompute, fields, loss=False, fullgraph=True)
    for step in range(3):
        trained(bundle, 2 * step)
    # Blocks that are computed again are another kind than those that are not.
    assert num_graphs() == (2 if recompute == "every" else 1)


def test_the_loss_is_a_graph_of_its_own_and_evaluations_have_theirs() -> None:
    bundle = built(fullgraph=True)
    trained(bundle)
    assert num_graphs() == 2
    with torch.no_grad():
        trained_loss = forward_loss(
            bundle, Microbatch(torch.zeros(2, 16).long(), torch.zeros(2, 16).long(), None), None
        )
    assert trained_loss.loss.isfinite()
    assert num_graphs() == 4


def test_what_data_decides_is_left_out_of_graphs_and_breaks_none() -> None:
    bundle = built(fields={"moe": moe(shared=1, first_dense=1)}, loss=False)
    for step in range(3):
        trained(bundle, 2 * step)
    assert num_graphs() == 3, "a dense block, attention and a norm"
    assert not counters["graph_break"]


def test_more_graphs_than_there_can_be_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch would run the block as it is written, and write so into a log."""
    monkeypatch.setattr(compile_module, "MOST_GRAPHS", 2)
    bundle = built(loss=False)
    trained(bundle, rows=1)
    trained(bundle, rows=2)
    with pytest.raises(Exception, match="limit"):
        trained(bundle, rows=3)


def test_a_budget_decides_what_is_kept() -> None:
    """Bytes that backward finds: less budget, fewer bytes; the gradient is the same."""
    kept, gradients = [], []
    for budget in (0, 1000):
        recompute = {"mode": "budget", "budget": budget, "blocks": [f"layers.{i}" for i in range(LAYERS)]}
        plan = execution_plan(model=decoder(layers=LAYERS), transforms={"compile": AOT, "recompute": recompute})
        bundle = build(plan, CPU)
        saved: dict[int, int] = {}

        def keep(x: torch.Tensor, saved: dict[int, int] = saved) -> torch.Tensor:
            saved[x.untyped_storage().data_ptr()] = x.untyped_storage().nbytes()
            return x

        with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
            trained(bundle)
        kept.append(sum(saved.values()))
        gradients.append({name: p.grad for name, p in bundle.model.named_parameters()})
    assert kept[0] < 0.7 * kept[1]
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradient, gradients[1][name])


def test_a_machine_without_a_compiler_is_told_before_the_first_step() -> None:
    absent = torch._inductor.config.patch({"cpp.cxx": ("no-such-compiler",)})
    with absent, pytest.raises(Refusal, match=r"FP1004.*no compiler") as refused:
        built(backend="inductor")
    assert any("CXX" in line for line in refused.value.help)
