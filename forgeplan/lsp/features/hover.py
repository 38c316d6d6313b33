"""What is behind the word under the cursor: its field, its value and who decided it, its declaration?"""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types as lsp

from forgeplan.compiler.explain import explain_path
from forgeplan.diagnostics.codes import registered
from forgeplan.diagnostics.refusal import UsageError
from forgeplan.diagnostics.span import Span
from forgeplan.dsl import syntax
from forgeplan.dsl.symbols import Symbol
from forgeplan.dsl.units import UNITS, show_amount
from forgeplan.dsl.values import RecordLike, show
from forgeplan.dsl.vocabulary import alternatives
from forgeplan.lsp import docs
from forgeplan.lsp.context import blocks_at
from forgeplan.lsp.names import Names
from forgeplan.lsp.places import Word, chosen, job_of, view_at, word_at
from forgeplan.lsp.snapshot import Snapshot
from forgeplan.lsp.workspace import Workspace
from forgeplan.spec import types as t
from forgeplan.spec.job import Job
from forgeplan.spec.registry import components, kinds_of
from forgeplan.spec.setting import settings_of

WIDTH = 90
LONGEST = 600
"""Characters of a declaration that are shown."""


def hover(snapshot: Snapshot, at: int, workspace: Workspace) -> lsp.Hover | None:
    """Markdown for the word at an offset."""
    for span, text in _found(snapshot, at, workspace):
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text), snapshot.range(span))
    return None


def _found(snapshot: Snapshot, at: int, workspace: Workspace) -> Iterator[tuple[Span, str]]:
    yield from _allowed_lint(snapshot, at)
    yield from _symbol(snapshot, at, workspace)
    yield from _number(snapshot, at)
    word = word_at(snapshot, at, workspace)
    if word is not None:
        text = _word(word, snapshot)
        if text:
            yield word.span, text


def _allowed_lint(snapshot: Snapshot, at: int) -> Iterator[tuple[Span, str]]:
    for node in _nodes(snapshot.parsed.file):
        for name in node.allows if isinstance(node, syntax.Item) else ():
            if name.span.start <= at <= name.span.end and name.text in registered():
                yield name.span, f"**{name.text}** · lint\n\n{registered()[name.text].rule}"


def _symbol(snapshot: Snapshot, at: int, workspace: Workspace) -> Iterator[tuple[Span, str]]:
    one = snapshot.index.at(at)
    found = Names(workspace).declaration(one.target, snapshot) if one is not None else None
    if one is None or found is None:
        return
    there, symbol = found
    kind = "" if symbol.kind in ("import", "imported") else f"{symbol.kind} "
    origin = f" · {there.name}" if there.name != snapshot.name else ""
    text = f"**{kind}{one.target.name}**{origin}"
    if symbol.doc:
        text += f"\n\n{symbol.doc}"
    span = symbol.item.span
    shown = there.text[span.start : span.end]
    if symbol.kind in ("let", "param", "entry", "imported", "variable"):
        text += f"\n\n```forge\n{shown if len(shown) <= LONGEST else shown[:LONGEST] + ' …'}\n```"
    value = _constant(there, symbol)
    if value and not shown.endswith(f" = {value}"):
        text += f"\n\nIts value is `{value}`."
    yield one.span, text


def _constant(there: Snapshot, symbol: Symbol) -> str:
    """What a `let` or `param` of a file came to, where the file itself is the one that was analysed."""
    if there.analysis is None or symbol.kind not in ("let", "param") or symbol.target.owner:
        return ""
    value = there.analysis.loaded.constant(symbol.target.name)
    return "" if value is None or isinstance(value, RecordLike) else show(value)


def _number(snapshot: Snapshot, at: int) -> Iterator[tuple[Span, str]]:
    """The exact value of a number that is written with a multiplier or unit."""
    for node in _nodes(snapshot.parsed.file):
        if isinstance(node, syntax.Number) and node.span.start <= at <= node.span.end:
            factor, dimension = UNITS.get(node.unit or "", (1, None))
            base = show_amount(node.amount * factor)
            unit = f" {dimension}" if dimension is not None else ""
            written = snapshot.text[node.span.start : node.span.end]
            if written.replace("_", "") != f"{base}{unit}".replace("_", ""):
                yield node.span, f"`{written}` is {base}{unit}"


def _nodes(node: syntax.Node) -> Iterator[syntax.Node]:
    stack = [node]
    while stack:
        one = stack.pop()
        yield one
        stack.extend(syntax.children(one))


def _word(word: Word, snapshot: Snapshot) -> str:
    context = word.context
    if context.is_value:
        return _value(word, snapshot)
    job = _job(word, snapshot)
    blocks = chosen(blocks_at(context.place.block, context.keys), word.path.rpartition(".")[0], job)
    setting = next((found for block in blocks if (found := settings_of(block).get(word.text))), None)
    if setting is None:
        return ""
    return "\n\n".join(filter(None, (docs.of_setting(word.path, setting), _resolved(word, snapshot))))


def _value(word: Word, snapshot: Snapshot) -> str:
    """A component, a member of an enumeration, or a value of the plan that an expression reads."""
    context = word.context
    for a in alternatives(context.expected) if context.expected is not None else ():
        inner = a.item if isinstance(a, t.ListOf) else a
        if isinstance(inner, t.Component) and word.text in components(inner.kind):
            return docs.of_component(inner.kind, word.text)
        if isinstance(inner, t.OneOf) and word.text in inner.members and context.setting is not None:
            return docs.of_setting(".".join(filter(None, (context.place.path, *context.keys))), context.setting)
    kinds = kinds_of(word.text)
    return docs.of_component(kinds[0], word.text) if len(kinds) == 1 else _resolved(word, snapshot)


def _resolved(word: Word, snapshot: Snapshot) -> str:
    """The value in force with every layer that set it, as `forgeplan explain FILE PATH` tells it."""
    job = _job(word, snapshot)
    analysis = snapshot.analysis
    if job is None or analysis is None:
        return ""
    try:
        page = explain_path(job, word.path, analysis.sources, WIDTH)
    except UsageError:
        return ""
    return f"```text\n{page.rstrip()}\n```"


def _job(word: Word, snapshot: Snapshot) -> Job | None:
    view = view_at(snapshot, word.span.start)
    return job_of(snapshot, *view) if view is not None else None
