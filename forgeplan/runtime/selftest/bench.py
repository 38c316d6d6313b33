"""Does a plan train on ranks of this machine what one process trains?"""

from __future__ import annotations

from traceback import format_exc
from types import TracebackType

import torch
from attrs import evolve

from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.plan.mesh import Mesh
from forgeplan.plan.operations import Fp8
from forgeplan.runtime.selftest.compare import deviations
from forgeplan.runtime.selftest.executed import Common, train_and_report, train_plan
from forgeplan.runtime.selftest.pool import Pools, RankFailed, in_one_line
from forgeplan.runtime.selftest.reference import Trained, train_reference
from forgeplan.runtime.selftest.result import Deviation

_SHARED_MICRO = 2
"""Sequences of a microbatch of references that several plans share."""


class Bench:
    """Ranks by world size, started when they are first needed, and references, computed once for what they depend on.

    A plan must be small: it is trained for all of its steps, on random sequences, by AdamW.
    """

    def __init__(self, device_type: str = "cpu") -> None:
        self.device_type = device_type
        self.pools = Pools(device_type)
        self._references: dict[str, Trained] = {}

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.pools.close()

    def deviations(self, plan: ExecutionPlan, packed: bool) -> list[Deviation]:
        """Of what the plan's layout trains, from one process. Raises RankFailed."""
        return deviations(self.trained(plan, packed), self.reference(plan, packed), plan.job.precision.params)

    def trained(self, plan: ExecutionPlan, packed: bool) -> Trained:
        """By the executor, on as many ranks as the mesh has. Raises RankFailed, also where ranks do not agree."""
        if plan.mesh.world == 1:
            return _here(plan, packed, self.device_type)
        function = f"{train_and_report.__module__}:{train_and_report.__name__}"
        trained, *others = self.pools[plan.mesh.world].run(function, plan, packed, self.device_type)
        first = Common.of(trained)
        for rank, other in enumerate(others, start=1):
            if difference := first.difference(other):
                raise RankFailed(f"ranks 0 and {rank} {difference}", f"{first.numbers}\n{other.numbers}")
        return trained

    def reference(self, plan: ExecutionPlan, packed: bool) -> Trained:
        """In one process: by a loop of its own, or, with layers in float8, by the executor, as only it rounds so."""
        float8 = [operation for operation in plan.program if isinstance(operation, Fp8)]
        plan = _as_one_process(plan, keeps_micro=bool(float8))
        job = plan.job
        read = (job.model, job.precision.params, job.batch, job.optimizer, job.schedule, job.loss, job.guard, job.seed)
        key = repr((*read, plan.steps, packed, float8))
        if key not in self._references:
            if float8:
                self._references[key] = _here(plan, packed, self.device_type)
            else:
                self._references[key] = train_reference(plan, packed, device=torch.device(self.device_type))
        return self._references[key]


def _here(plan: ExecutionPlan, packed: bool, device_type: str) -> Trained:
    """Without a rank of its own, and with the failures of one."""
    try:
        return train_plan(plan, packed, device_type)
    except Exception as error:
        raise RankFailed(f"rank 0: {in_one_line(error)}", format_exc()) from error


def _as_one_process(plan: ExecutionPlan, keeps_micro: bool) -> ExecutionPlan:
    """The same steps, by the same products, and nothing else in the program that a plan need not have.

    Only routers and scales of float8 see microbatches: other plans share references that have small ones.
    """
    sequences, batch = plan.sequences_per_step, plan.job.batch
    keeps_micro = keeps_micro or plan.job.model.moe is not None or sequences % _SHARED_MICRO > 0
    micro = batch.micro if keeps_micro else _SHARED_MICRO
    batch = evolve(batch, micro=micro, accumulation=sequences // micro)
    program = (o for o in plan.program if o.always or isinstance(o, Fp8))
    alone = tuple(evolve(o, all_gather=False) if isinstance(o, Fp8) else o for o in program)
    return evolve(plan, mesh=Mesh(), program=alone, job=evolve(plan.job, batch=batch))
