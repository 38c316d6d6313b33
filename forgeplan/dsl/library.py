"""Where is the library of `std:` modules, and which of them declares a name?"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

STD = Path(__file__).parent.parent / "std"


@cache
def module_of(name: str) -> str | None:
    """The `std:` module that declares a name; None where none does."""
    declaration = re.compile(rf"^let {re.escape(name)}\b", re.MULTILINE)
    modules = sorted(STD.glob("*.forge"))
    return next((m.stem for m in modules if declaration.search(m.read_text(encoding="utf-8"))), None)
