"""Can the devices compute in these number formats?"""

from __future__ import annotations

from collections.abc import Iterator

from forgeplan.compiler.facts import Facts
from forgeplan.compiler.invariants.registry import Finding, invariant, legal

FIELDS = ("params", "compute", "reduce", "moments")


@invariant("FP0713", "fp64 is for verification on the CPU")
def double_only_on_the_cpu(facts: Facts) -> Iterator[Finding]:
    arch = facts["cluster.arch"]
    double = [facts[f"precision.{name}"] for name in FIELDS if facts[f"precision.{name}"].value == "fp64"]
    if arch.value == "cpu" or not double:
        return
    names = ", ".join(fact.path for fact in double)
    yield double_only_on_the_cpu.at(
        f"{names} = fp64 is not supported by this executor on {arch.value}: attention kernels of "
        "accelerators do not take it",
        *double,
        arch,
        legal=(legal(facts, double[0].path, ["fp32", "bf16"]),) if len(double) == 1 else (),
        help=() if len(double) == 1 else ("use fp32 or bf16 for each of them",),
    )
