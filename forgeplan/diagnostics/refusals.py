"""Which refusals can several parts of the runtime raise?

A refusal that one file alone raises is declared in that file; these are shared by launch, checkpoints and generation.
"""

from __future__ import annotations

from forgeplan.diagnostics.codes import code
from forgeplan.diagnostics.refusal import Refusal

WORLD_SIZE = code("FP1003", "the number of processes, in all and on each machine, is the one the plan was compiled for")
DEVICE = code("FP1004", "the device is at least the one the plan was compiled for")
LAUNCH_ENVIRONMENT = code("FP1007", "the launch environment is whole")
DIRECTORY_HELD = code("FP1010", "the run directory is not held by a living job")
WOULD_OVERWRITE = code("FP1011", "`resume = none` does not write over committed checkpoints")
STEP_MISSING = code("FP1012", "a named step is committed and complete")
CHECKSUM = code("FP1013", "the checksums of the chosen checkpoint hold")
FOREIGN_PICKLE = code("FP1014", "checkpoint metadata holds nothing but tensor layouts, and nothing else is a pickle")
STATE_MISSING = code("FP1015", "every state that the plan resumes is in the checkpoint, with its shape")
TROUBLE = code("FP1019", "trouble stays within its budget: non-finite steps, checkpoints that cannot be written")
GENERATION = code("FP1020", "a model can generate what is asked: prompt and new tokens fit into its context")


def as_text(refusal: Refusal) -> str:
    """A refusal as a person reads it: one line that says what and where, then what to do."""
    return "\n".join(
        [f"error[{refusal.code.id}]: {refusal.message}", *(f"  help: {line}" for line in refusal.help)],
    )
