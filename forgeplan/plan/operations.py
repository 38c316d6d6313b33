"""Which steps turn a description of a model into sharded, initialised modules, and in which order may they stand?

An operation is data. Its order rules stand on it, are checked by the compiler and checked again by the executor.
"""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen


@frozen
class Operation:
    """`name` is its word in the plan language; `before` says which must follow, and what silently breaks otherwise."""

    name: ClassVar[str]
    why: ClassVar[str]
    """One line for a person: what this step does, and why it stands where it stands."""
    before: ClassVar[dict[str, str]] = {}
    always: ClassVar[bool] = True
    """Whether every program has it."""
    placed_by: str
    """Who put it there: "plan" (named in `apply`), "mesh" (an axis above 1 asks for it) or "always"."""


@frozen
class Build(Operation):
    name = "build"
    why = "every module on the meta device: names and shapes, no memory"
    before: ClassVar[dict[str, str]] = {
        "recompute": "there are no blocks to wrap yet",
        "fsdp": "there are no parameters to shard yet",
        "materialise": "there is nothing to allocate yet",
        "initialise": "there is nothing to fill yet",
    }


@frozen
class Recompute(Operation):
    """mode: none | full."""

    name = "recompute"
    always = False
    why = "inside the fsdp unit, so that a block is gathered once for its replay and its backward"
    before: ClassVar[dict[str, str]] = {
        "fsdp": "the unit lies inside the replayed part: every block is gathered twice in backward",
        "materialise": "wrapping changes modules that already own memory",
        "initialise": "wrapping changes modules that are already filled",
    }
    mode: str = "full"


@frozen
class Fsdp(Operation):
    """reshard: default | always | never | a number of ranks. Degrees come from the mesh, dtypes from `precision`."""

    name = "fsdp"
    why = "last of the transforms, so that its gather and reduce surround everything inside a unit; carries the dtypes"
    before: ClassVar[dict[str, str]] = {
        "materialise": "memory for the whole model is allocated on every rank",
        "initialise": "whole tensors are filled on every rank, and then cut",
    }
    reshard: str | int = "default"
    params: str = "fp32"
    compute: str = "fp32"
    reduce: str = "fp32"


@frozen
class Materialise(Operation):
    name = "materialise"
    why = "memory for this rank's shards only"
    before: ClassVar[dict[str, str]] = {"initialise": "values are written into tensors without memory"}


@frozen
class Initialise(Operation):
    """Every parameter and buffer is a function of (seed, full name, global shape)."""

    name = "initialise"
    why = "each value from (seed, name, shape), never from rank or layout"
    seed: int = 0


OPERATIONS: dict[str, type[Operation]] = {cls.name: cls for cls in (Build, Recompute, Fsdp, Materialise, Initialise)}


def first_inversion(names: list[str]) -> tuple[str, str, str] | None:
    """The first pair that stands the wrong way round, as (earlier, later, what silently breaks), or None."""
    for i, earlier in enumerate(names):
        for later in names[i + 1 :]:
            breaks = OPERATIONS[later].before.get(earlier)
            if breaks is not None:
                return earlier, later, breaks
    return None
