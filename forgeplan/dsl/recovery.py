"""How does parsing go on behind a fault?

The fault is named (`mistakes.py`), and either mended, so that the text goes on being read as if it were right, or the
statement or list item in which it stands is skipped. What is skipped leaves a poisoned node, so that nobody complains
that it is missing.
"""

from __future__ import annotations

from bisect import bisect_left
from functools import cache
from typing import Any

from attrs import frozen

from forgeplan.diagnostics.span import Span
from forgeplan.dsl import syntax
from forgeplan.dsl.driver import Run
from forgeplan.dsl.mistakes import judge
from forgeplan.dsl.site import Site, path_at
from forgeplan.dsl.tables import tables
from forgeplan.dsl.tokens import CLOSER, OPENER, SOFT_KINDS

_BLOCKS = frozenset(("PLAN", "PARTIAL", "PROFILE", "SWEEP", "TEST", "ZIP"))


def recover(run: Run, at: int) -> int | None:
    """Report the fault at token `at`; the index of the token to go on with, or None where no frame is left."""
    run.settle()
    frame = _innermost(run)
    if frame is None:
        _report(run, Site(run, at, at, len(run.tokens) - 1, "expression", ()))
        return None
    first = _first_token(run, frame, at)
    site = Site(run, at, first, _end(run, frame, first, at), frame.kind, tuple(run.values[frame.size :]))
    again = run.fault_at == at
    run.fault_at = at
    mended = None if again else _report(run, site)
    if mended is not None:
        return mended
    if frame.kind == "list":
        return _skip_list_item(run, frame, site)
    header = _skip_header(run, frame, site)
    return _skip_statement(run, frame, site) if header is None else header


@frozen
class _Frame:
    """Where on the stack an open list of statements or values begins. `size` counts the values up to and with it."""

    kind: str
    size: int


@cache
def _frame_states() -> dict[int, str]:
    """Which states are reached with `items`, `file_items` or the `[` of a list on top."""
    found: dict[int, str] = {}
    for state in tables().states:
        for head, kind in (("file_items", "file"), ("items", "body")):
            if head in state:
                found[state[head]] = kind
        if "LSQB" in state and state["LSQB"] >= 0:
            opened = state["LSQB"]
            if "args" in tables().states[opened]:
                found[opened] = "list"
    return found


def _innermost(run: Run) -> _Frame | None:
    frames = _frame_states()
    for size in range(len(run.values), 0, -1):
        kind = frames.get(run.states[size])
        if kind is not None:
            return _Frame(kind, size)
    return None


def _first_token(run: Run, frame: _Frame, at: int) -> int:
    """The token with which the unfinished statement or item begins."""
    partial = run.values[frame.size :]
    if frame.kind == "list" and len(partial) > 1 and run.states[frame.size + 1] == _args_state(run, frame):
        return int(partial[1]) + 1  # behind the comma
    return _token_of(run, partial[0]) if partial else at


def _args_state(run: Run, frame: _Frame) -> int:
    return run.table.states[run.states[frame.size]]["args"]


def _token_of(run: Run, value: Any) -> int:
    while isinstance(value, list):
        value = value[0]
    if isinstance(value, int):
        return value
    return bisect_left(run.tokens.starts, value.span.start)


def _end(run: Run, frame: _Frame, first: int, at: int) -> int:
    """The token that ends the statement or item: a separator, the closer of the frame, or the end of the text."""
    kinds = run.tokens.kinds
    depth = 0
    for i in range(first, len(kinds)):
        kind = kinds[i]
        if kind in CLOSER:
            depth += 1
        elif kind in OPENER:
            if depth == 0:
                return i
            depth -= 1
        elif i >= at and depth == 0 and (kind == "NL" or (kind == "COMMA" and frame.kind != "file")):
            return i
    return len(kinds) - 1


def _report(run: Run, site: Site) -> int | None:
    """Add the fault unless it follows from something reported; the token to go on with if it could be mended."""
    bad = run.tokens.bad
    known = bool(bad) and any(i in bad for i in range(site.first, min(site.end, len(run.tokens) - 1) + 1))
    known = known or _same_line(run, run.guessed_at, site.at)
    verdict = judge(site)
    if not known:
        run.builder.diagnostics.append(verdict.diagnostic)
    if verdict.is_guess:
        run.guessed_at = site.at
    return verdict.go_on


def _same_line(run: Run, earlier: int, at: int) -> bool:
    tokens = run.tokens
    return earlier >= 0 and "\n" not in tokens.text[tokens.starts[earlier] : tokens.starts[at]]


def _skip_list_item(run: Run, frame: _Frame, site: Site) -> int:
    partial = run.values[frame.size :]
    has_items = bool(partial) and run.states[frame.size + 1] == _args_state(run, frame)
    items = partial[0] if has_items else []
    if has_items and len(partial) == 1:
        items.pop()
    items.append(syntax.ErrorExpr(span=_span(run, site)))
    run.cut(frame.size)
    run.push("args", items)
    return site.end


def _skip_header(run: Run, frame: _Frame, site: Site) -> int | None:
    """A block whose header is broken: keep its name and read its body."""
    tokens = run.tokens
    brace = next((i for i in range(site.at, site.end) if tokens.kinds[i] == "LBRACE"), None)
    if brace is None:
        return None
    keyword = next((i for i in range(site.at, brace) if tokens.kinds[i] in _BLOCKS), None)
    if site.at == site.first and keyword is not None:
        run.cut(frame.size)
        return keyword
    kind = tokens.kinds[site.first]
    if kind not in _BLOCKS:
        return None
    name = site.first + (2 if kind == "PARTIAL" else 1)
    if kind in ("ZIP", "TEST", "SWEEP") or name >= brace or tokens.kinds[name] not in ("NAME", *SOFT_KINDS):
        return None
    run.cut(frame.size)
    for i in range(site.first, name + 1):
        if not run.feed(tokens.kinds[i], i):
            run.cut(frame.size)
            return None
    return brace


def _skip_statement(run: Run, frame: _Frame, site: Site) -> int:
    items = run.values[frame.size - 1]
    run.cut(frame.size)
    if site.end > site.first:
        items.extend(_poisoned(run, site))
    end = run.tokens.kinds[site.end]
    return site.end + 1 if end in ("NL", "COMMA") else site.end


def _poisoned(run: Run, site: Site) -> list[syntax.Item]:
    """What is left of a statement that could not be read: the names it gives a value to, and an error."""
    tokens, builder = run.tokens, run.builder
    span = _span(run, site)
    error = syntax.ErrorExpr(span=span)
    kind = tokens.kinds[site.first]
    if kind in ("LET", "PARAM") and tokens.kinds[site.first + 1] in ("NAME", *SOFT_KINDS):
        return [syntax.Let(builder.name(site.first + 1), None, error, span=span)]
    if kind == "FROM":
        imported = range(site.first + 2, site.end)
        names = [builder.name(i) for i in imported if tokens.kinds[i] == "NAME"]
        return [syntax.ErrorItem(span=span), *(syntax.Let(name, None, error, span=span) for name in names)]
    path = path_at(tokens, site.first)
    if path and site.first + len(path) * 2 - 1 <= site.end:
        return [syntax.Assign(builder.path_of(path), error, span=span)]
    return [syntax.ErrorItem(span=span)]


def _span(run: Run, site: Site) -> Span:
    tokens = run.tokens
    last = max(site.first, site.end - 1)
    return Span(tokens.file, tokens.starts[site.first], max(tokens.starts[site.first], tokens.ends[last]))
