"""Which execution plan does an argument mean: one that is compiled for it, or one that is stored?"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from forgeplan.cli.plan_file import Choice, chosen, has_errors
from forgeplan.diagnostics.refusal import UsageError

if TYPE_CHECKING:
    from forgeplan.plan.execution_plan import ExecutionPlan

_SIDE = re.compile(r"(?P<file>.+?\.forge)(?::(?P<plan>\w+))?(?:@(?P<profile>\w+))?")


def side(text: str, as_json: bool = False) -> Choice:
    """`FILE`, `FILE:PLAN`, `FILE@PROFILE` or `FILE:PLAN@PROFILE`; a file that has that very name is meant first."""
    found = _SIDE.fullmatch(text)
    if found is None or Path(text).exists():
        return Choice(text, as_json=as_json)
    return Choice(found["file"], found["plan"], found["profile"], as_json=as_json)


def compiled(choice: Choice) -> ExecutionPlan:
    """The plan of a plan file without errors, or what is stored in a file, a run directory or a checkpoint.

    Errors are shown and end the command; warnings are for `lint`. Raises UsageError and Refusal.
    """
    from forgeplan.plan.stored import is_stored, stored

    if is_stored(choice.file):
        if choice.plan or choice.profile or choice.overrides:
            raise UsageError(f"{choice.file} is compiled already: what it says cannot be chosen any more")
        return stored(choice.file)
    found = chosen(choice)
    if has_errors(found.diagnostics):
        found.refuse_errors()
    return found.compiled()
