"""How does a test of the renderer say where a fault is? By the words that stand there."""

from __future__ import annotations

from forgeplan.diagnostics.codes import Code
from forgeplan.diagnostics.diagnostic import Label
from forgeplan.diagnostics.source import Sources
from forgeplan.diagnostics.span import Span

RULE = Code("FP0412", "a rule made up for a test")


def texts(**files: str) -> Sources:
    """Sources by name; `plan_forge="…"` is the file `plan.forge`."""
    sources = Sources()
    for name, text in files.items():
        sources.add(name.replace("_", "."), text)
    return sources


def at(sources: Sources, file: str, part: str, text: str = "", nth: int = 0) -> Label:
    """A label on the nth occurrence of a part of a file."""
    source = sources.get(file)
    assert source is not None
    start = -1
    for _ in range(nth + 1):
        start = source.text.index(part, start + 1)
    return Label(Span(file, start, start + len(part)), text)
