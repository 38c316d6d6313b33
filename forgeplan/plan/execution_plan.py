"""What does the compiler hand to the executor?"""

from __future__ import annotations

from attrs import Factory, field, frozen

from forgeplan.plan.mesh import Mesh
from forgeplan.plan.operations import Operation
from forgeplan.spec.plan import Plan

FORMAT_VERSION = 1


@frozen
class TensorFact:
    """A parameter as planned: full name, global shape, stored dtype."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@frozen
class RankClass:
    """Ranks that hold exactly the same number of bytes. `ranks` are runs (first, count, stride) of rank numbers."""

    ranks: tuple[tuple[int, int, int], ...]
    num_ranks: int
    parameter_bytes: int
    gradient_bytes: int
    optimizer_bytes: int

    @property
    def state_bytes(self) -> int:
        return self.parameter_bytes + self.gradient_bytes + self.optimizer_bytes


@frozen
class Estimates:
    """Numbers for a person; nothing is decided by them at run time."""

    num_parameters: int
    num_active_parameters: int
    flops_per_token: int
    flops_per_token_causal: int
    tokens_per_step: int
    counted_tokens: int | None
    """Positions of the whole run, or None where only wall time bounds it."""


@frozen
class ExecutionPlan:
    """The compiled, immutable artefact. Two hashes: `meaning` (what is trained and how) and `file` (the bytes)."""

    format_version: int
    name: str
    """run.name: plan[@profile][/cell]."""
    run_dir: str
    job: Plan
    steps: int | None
    mesh: Mesh
    program: tuple[Operation, ...]
    tensors: tuple[TensorFact, ...]
    rank_classes: tuple[RankClass, ...]
    estimates: Estimates
    provenance: dict[str, tuple[str, ...]] = field(default=Factory(dict))
    """For each path, every layer that set it, strongest first: "file:line:column layer = text"."""
    sources: dict[str, str] = field(default=Factory(dict))
    """sha256 of every file that took part."""
    tools: dict[str, str] = field(default=Factory(dict))
    meaning: str = ""
    """Hash of job, program and format version: `plan.hash`."""
    parts: dict[str, str] = field(default=Factory(dict))
    """Hash of every part above, so that an altered one can be named."""
    file: str = ""
    """Hash of the whole file."""

    @property
    def sequences_per_step(self) -> int:
        """Of all ranks and microbatches."""
        return self.job.batch.accumulation * self.job.batch.micro * self.mesh.data_ranks

    @property
    def tokens_per_step(self) -> int:
        """Positions of one step, whether counted in the loss or not."""
        return self.sequences_per_step * self.job.batch.length
