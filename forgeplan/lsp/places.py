"""What does a word of a document mean: which field, in which plan?"""

from __future__ import annotations

import re
from collections.abc import Sequence

from attrs import frozen

from forgeplan.diagnostics.span import Span
from forgeplan.dsl import syntax
from forgeplan.dsl.symbols import Symbol
from forgeplan.lsp.context import Context, context_at, resolver
from forgeplan.lsp.names import Names
from forgeplan.lsp.snapshot import Snapshot
from forgeplan.lsp.workspace import Workspace
from forgeplan.spec.job import Job

_CHAIN = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*\Z")


@frozen
class Word:
    """A word with its context; `path` is the path in the plan that it completes, as far as it reads as one."""

    span: Span
    text: str
    context: Context
    path: str


def word_at(snapshot: Snapshot, at: int, workspace: Workspace) -> Word | None:
    """The word that an offset touches."""
    text, start, end = snapshot.text, at, at
    while start > 0 and (text[start - 1].isalnum() or text[start - 1] == "_"):
        start -= 1
    while end < len(text) and (text[end].isalnum() or text[end] == "_"):
        end += 1
    if start == end or text[start].isdigit():
        return None
    context = context_of(snapshot, end, workspace)
    if context.is_value:
        chain = _CHAIN.search(text, 0, end)
        path = chain.group() if chain else text[start:end]
    else:
        path = ".".join(filter(None, (context.place.path, *context.keys, text[start:end])))
    return Word(Span(snapshot.name, start, end), text[start:end], context, path)


def context_of(snapshot: Snapshot, at: int, workspace: Workspace) -> Context:
    """The context of an offset, with `let`s followed through imports."""

    def imported(symbol: Symbol) -> Symbol | None:
        found = Names(workspace).declaration(symbol.target, snapshot)
        return found[1] if found is not None else None

    return context_at(snapshot.name, snapshot.text, at, resolver(snapshot.index.visible(at), imported))


def view_at(snapshot: Snapshot, at: int) -> tuple[str, str | None] | None:
    """The plan that an offset is inside of, or that a sweep or test there is about, and the profile around it."""
    for item in snapshot.parsed.file.items:
        if item.span.start <= at <= item.span.end:
            match item:
                case syntax.Plan(name=name, body=body):
                    profiles = (one for one in body.items if isinstance(one, syntax.Profile))
                    around = (one.name.text for one in profiles if one.span.start <= at <= one.span.end)
                    return name.text, next(around, None)
                case syntax.Sweep(base=base) | syntax.Test(base=base):
                    return base.text, None
    return None


def job_of(snapshot: Snapshot, plan: str, profile: str | None = None) -> Job | None:
    """The plan as it was last resolved; None where it was not."""
    analysis = snapshot.analysis
    if analysis is None or plan not in analysis.plans:
        return None
    return analysis.job(plan, profile) if profile in (None, *analysis.loaded.profiles(plan)) else None


def chosen(blocks: Sequence[type], path: str, job: Job | None) -> Sequence[type]:
    """Of the components that may stand at a path, the one of the plan; all of them where that is not known."""
    leaf = job.leaves.get(path) if job is not None and len(blocks) > 1 else None
    return [block for block in blocks if leaf is not None and getattr(block, "tag", None) == leaf.value] or blocks
