"""How does a rank come to hold some stages of the model only?"""

from __future__ import annotations

from typing import Any, cast

from torch import Tensor, nn

from forgeplan.plan.operations import Pp
from forgeplan.plan.stages import stages_of_rank
from forgeplan.runtime.executor import Bundle
from forgeplan.runtime.randomness import Randomness
from forgeplan.runtime.registry import executes

# B batch, S positions of this rank, D model width, V logits of this rank


@executes(Pp)
def pp(operation: Pp, bundle: Bundle) -> None:
    """Leave each rank the layers of its stages, under their global names, and let microbatches pass the stages.

    `bundle.model` holds the modules of all stages of this rank, for what is done to weights; `bundle.stages` are run.
    """
    # Here, as torch's pipelining takes a second to import, and most programs have no pipeline.
    from forgeplan.runtime.pipeline import Pipeline

    group, whole = bundle.meshes.group("pp"), cast(Any, bundle.model)
    last = len(operation.stages) - 1
    numbers = stages_of_rank(operation.schedule, operation.stages_per_rank, group.size, group.index)
    layers = {number: range(*operation.stages[number]) for number in numbers}
    parts = {n: whole.part(layers[n], embedding=n == 0, head=n == last) for n in numbers}
    modules = {n: _between_tensors(part, bundle.plan.job.seed) for n, part in parts.items()}
    bundle.model = whole.part(
        (layer for n in numbers for layer in layers[n]), embedding=0 in numbers, head=last in numbers
    )
    bundle.stages = list(modules.values())
    pipeline = Pipeline.of(operation, modules, bundle)
    bundle.schedule, bundle.forward_only = pipeline.train, pipeline.forward_only


def _between_tensors(part: Any, seed: int) -> nn.Module:
    """The part, with a forward that takes and returns what can be sent: torch's stages know tensors only.

    The forward itself is replaced, not the module, so that names stay and the part can be the root of FSDP's units.
    """
    inner = part.forward

    def forward(
        entering: Tensor,
        positions_BS: Tensor | None = None,
        documents_BS: Tensor | None = None,
        samples_B: Tensor | None = None,
    ) -> Tensor:
        randomness = None if samples_B is None else Randomness(seed, samples_B)
        leaving: Tensor = inner(entering, positions_BS, documents_BS, randomness).logits_BSV
        return leaving

    part.forward = forward
    return part
