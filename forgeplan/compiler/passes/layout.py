"""Which of the model's modules are on which ranks, and what cuts their tensors?"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain
from typing import Any

from attrs import evolve, frozen

from forgeplan.compiler.facts import Poisoned
from forgeplan.compiler.passes.float8 import report_of
from forgeplan.compiler.passes.manager import Results, analysis
from forgeplan.compiler.passes.parameters import parameters_of
from forgeplan.compiler.passes.stages import stages_of
from forgeplan.plan.mesh import Mesh
from forgeplan.plan.operations import Fsdp, Tp
from forgeplan.plan.sharding import Division, division
from forgeplan.plan.stages import Stage, stages_of_rank
from forgeplan.spec.cut import Cut
from forgeplan.spec.operation.pp import Pp, Weights

BARE_PP = Pp(schedule="one_f_one_b", stages_per_rank=1, cuts=None, weights=Weights(embedding=1, head=1))
"""What pp is where `apply` leaves it out."""

Kind = tuple[tuple[int, ...], Cut]
"""Shape and cut of a parameter: those of one kind are divided alike."""


@frozen
class Layout:
    """The mesh, the stages of the pipeline, and the options that decide where tensors are.

    `stages` are the layers [first, end) of every stage in the order of forward, and `held` the stages of each position
    along pp. Without a pipeline there is one stage.
    """

    mesh: Mesh
    sequence: bool
    kv: str
    stages: tuple[Stage, ...]
    held: tuple[tuple[int, ...], ...]
    reshard: str | int
    offload: bool
    kinds: frozenset[Kind]
    """Of all parameters of the model."""
    float8: frozenset[str] = frozenset()
    """Layers whose weights are gathered in float8."""

    def division(self, shape: tuple[int, ...], cut: Cut) -> Division:
        """How the ranks of one stage divide a tensor."""
        return division(shape, cut, self.mesh, sequence=self.sequence, kv=self.kv)

    @property
    def is_sharded(self) -> bool:
        """Whether parameters are divided, or gradients reduced, over data ranks."""
        return self.mesh.data_ranks * self.mesh.cp > 1 or any(self.division(*kind).data > 1 for kind in self.kinds)

    @property
    def offloads(self) -> bool:
        """Whether shards and optimizer state are in host memory."""
        return self.offload and self.is_sharded

    @property
    def keeps_gathered(self) -> bool:
        """Whether units stay gathered, once they are, until the end of the step."""
        return self.reshard in ("never", 1) or self.mesh.pp > 1

    @property
    def reduces_late(self) -> bool:
        """Whether gradients wait for the end of the step, not yet reduced over the data ranks."""
        return self.mesh.pp > 1 and self.is_sharded

    def position_of(self, module: str) -> int:
        """The position along pp of the ranks that hold `embedding`, `layers.3`, `norm` or `head`."""
        stage = self.stage_of(module)
        return next(position for position, stages in enumerate(self.held) if stage in stages)

    def stage_of(self, module: str) -> int:
        """The stage of a module."""
        if module == "embedding" or len(self.stages) == 1:
            return 0
        kind, _, layer = module.partition(".")
        if kind != "layers":
            return len(self.stages) - 1
        return next(stage for stage, (first, end) in enumerate(self.stages) if first <= int(layer) < end)


def layout_of(model: Any, mesh: Mesh, apply: Iterable[Any]) -> Layout | None:
    """The layout of a model, or None where it cannot be divided like that, which checks explain.

    `apply` are a plan's transforms; those that it leaves out have their defaults.
    """
    written = {item.tag: item for item in apply}
    tp, fsdp, pp = written.get("tp", Tp("mesh")), written.get("fsdp", Fsdp("always")), written.get("pp", BARE_PP)
    stages = stages_of(model.layers, mesh.pp, pp)
    positions = range(mesh.pp) if mesh.pp > 1 else ()
    held = tuple(stages_of_rank(pp.schedule, pp.stages_per_rank, mesh.pp, p) for p in positions) or ((0,),)
    if stages is None or sorted(chain(*held)) != list(range(len(stages))) or mesh.expert_fold % mesh.ep:
        return None
    kinds = parameters_of(model).kinds
    found = Layout(mesh, tp.sequence, tp.kv, stages, held, fsdp.reshard, fsdp.offload, kinds)
    if not all(_is_even(found.division(*kind)) for kind in kinds):
        return None
    fp8 = written.get("fp8")
    if fp8 is None or not fp8.all_gather:
        return found
    return evolve(found, float8=frozenset(report_of(model, mesh, tp.sequence, tp.kv, fp8).converted))


def _is_even(division: Division) -> bool:
    """Whether tp or ep divide the tensor without a rest."""
    return division.weight_dim is None or division.shape[division.weight_dim] % division.weights == 0


@analysis("layout", "mesh")
def layout(results: Results) -> Layout:
    """The mesh with the stages of the pipeline, and the options that decide where tensors are."""
    facts = results.facts
    written = facts.block("apply")
    # Also those that `apply` leaves out, as a check may ask what other options of them would do.
    inserted = (facts.transform(name) for name in ("pp", "tp", "fsdp") if all(item.tag != name for item in written))
    found = layout_of(facts.block("model"), results["mesh"], (*written, *inserted))
    if found is None:
        raise Poisoned("mesh")
    return found
