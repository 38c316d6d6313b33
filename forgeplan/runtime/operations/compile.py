"""What of a model is translated by torch.compile?"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import torch
import torch._dynamo
import torch._functorch.config
from torch import nn

from forgeplan.diagnostics.refusal import Refusal
from forgeplan.diagnostics.refusals import DEVICE
from forgeplan.plan.operations import Compile, Recompute
from forgeplan.runtime.executor import Bundle
from forgeplan.runtime.model.module import Module
from forgeplan.runtime.registry import executes, implementation

MOST_GRAPHS = 64
"""Of one function, for kinds of blocks, training, evaluation and their shapes; more is a fault, and an error."""


@executes(Compile)
def compile_blocks(operation: Compile, bundle: Bundle) -> None:
    """Let each block run as one graph, which equal blocks share; and the loss, if asked for.

    The forward itself is replaced, not the module: no name changes, and hooks of the unit (which gather its parameters)
    lie outside of the graph. Of a block with a module whose shapes depend on data, the other modules are compiled.
    """
    _check_tools(operation.backend, bundle.device)
    # Graphs of a model that this process had before.
    torch._dynamo.reset()
    # Without an error, what has more graphs runs as it is written: slow, and nobody would know why.
    torch._dynamo.config.recompile_limit = MOST_GRAPHS
    torch._dynamo.config.fail_on_recompile_limit_hit = True
    logging.getLogger("torch._higher_order_ops.wrap").addFilter(_is_news)
    translated = partial(torch.compile, fullgraph=operation.fullgraph, dynamic=False)
    compiled = translated(_call, backend=operation.backend)
    budget, budgeted = _budget(bundle)
    within_budget = translated(_call, backend=_within(budget, operation.backend))
    for name, module in bundle.model.named_modules():
        if isinstance(module, Module) and module.recompute_unit:
            for part in _static(module):
                part.forward = partial(within_budget if name in budgeted else compiled, part.forward)
    if operation.loss:
        bundle.loss = partial(compiled, implementation("loss", bundle.plan.job.loss))


def _check_tools(backend: str, device: torch.device) -> None:
    """Refusal FP1004 where inductor has no compiler for the C++ that it writes for a CPU."""
    if backend != "inductor" or device.type != "cpu":
        return
    from torch._inductor.cpp_builder import get_cpp_compiler
    from torch._inductor.exc import InvalidCxxCompiler

    try:
        get_cpp_compiler()
    except InvalidCxxCompiler as error:
        raise Refusal(
            DEVICE,
            "`compile` with backend = inductor writes C++ for a CPU, and this machine has no compiler for it",
            ("install g++, or say in CXX where one is", "or compile with backend = aot_eager, or drop `compile`"),
        ) from error


def _call(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """What is compiled: with the function as an argument, weights of its module are inputs of the graph."""
    return function(*arguments, **options)


def _static(module: nn.Module) -> Iterator[nn.Module]:
    """The largest modules within this one whose shapes do not depend on data."""
    if not any(isinstance(m, Module) and m.has_data_dependent_shapes for m in module.modules()):
        yield module
    elif not (isinstance(module, Module) and module.has_data_dependent_shapes):
        for child in module.children():
            yield from _static(child)


def _budget(bundle: Bundle) -> tuple[float, tuple[str, ...]]:
    """Share of the activations that `recompute` lets graphs keep, and the blocks that it says so of."""
    found = (o for o in bundle.plan.program if isinstance(o, Recompute) and o.mode == "budget")
    return next(((o.budget / 1000, o.blocks) for o in found), (1.0, ()))


def _within(budget: float, backend: str) -> Callable[..., Any]:
    """The backend, dividing forward from backward within the budget: torch has one setting for the whole process."""
    translate = torch._dynamo.lookup_backend(backend)

    def within_budget(graph: Any, inputs: Any) -> Any:
        with torch._functorch.config.patch(activation_memory_budget=budget):
            return translate(graph, inputs)

    return within_budget


def _is_news(record: logging.LogRecord) -> bool:
    """Torch warns of in-place operations in whatever is recomputed selectively. What is replayed here has none."""
    return "context_fn is passed to torch.utils.checkpoint" not in record.getMessage()
