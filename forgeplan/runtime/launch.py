"""How does one command become as many processes as the plan has ranks?"""

from __future__ import annotations

from forgeplan.runtime.options import RunOptions


def launch(plan: bytes, options: RunOptions) -> int:
    """Run a compiled plan (the bytes of its plan.json) on this machine and return the exit code.

    Starts torchrun for a world above one, runs in this process otherwise; never imports torch in the parent.
    A refusal is printed here as one message; nothing is raised for it.
    """
    raise SystemExit(len(plan) + options.take_over)
