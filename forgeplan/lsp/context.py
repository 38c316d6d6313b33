"""What may stand at a place of a text that is still being written?

The tokens before the place say it, not the tree: half a statement is the usual case. Brackets that are open there are
frames, each with the statement that opened it; from the outermost inwards they say which block of the schema a key
belongs to, or which type a value has.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from attrs import define, field, frozen

from forgeplan.diagnostics.span import Span
from forgeplan.dsl import syntax
from forgeplan.dsl.lexer import lex
from forgeplan.dsl.symbols import Symbol
from forgeplan.dsl.tokens import CLOSER, OPENER, SOFT_KINDS, Tokens
from forgeplan.dsl.vocabulary import alternatives, structural
from forgeplan.spec import types as t
from forgeplan.spec.plan import Plan
from forgeplan.spec.registry import components, kinds_of
from forgeplan.spec.setting import Setting, settings_of

_PLANS = frozenset(("PLAN", "PARTIAL", "PROFILE", "SWEEP", "TEST", "EXPECT"))
"""What begins a statement whose body sets fields of a plan."""
_GOES_ON = frozenset(
    ("EQ", "PLUSEQ", "DOT", "COMMA", "PLUS", "MINUS", "TIMES", "POWER", "COMPARE", "RANGE", "COLON", "IF", "THEN",
     "ELSE", "AND", "OR", "NOT", "IN", "EXTENDS", "OVER", "AFTER", "FOR", "IMPORT", "FROM", "AS")
)  # fmt: skip
"""Behind these a line does not end a statement."""


@define
class _Frame:
    """An open bracket, the statement before it, and the statement that is being written inside."""

    opener: str
    head: list[int] = field(factory=list)
    statement: list[int] = field(factory=list)
    written: list[str] = field(factory=list)


@frozen
class Place:
    """The block and path of the record around a place."""

    block: type | None = None
    path: str = ""
    type: t.FieldType | None = None
    """Of a list or map: what its items are."""
    kind: str = "file"
    """file, plan, sweep, test, node, record, map or list."""


@frozen
class Context:
    """Everything that is known of one place."""

    place: Place
    word: Span
    """The name that is being written there; empty where none is."""
    keys: tuple[str, ...]
    """Of a key, the names before the word (`model.rope.`); of a value, the path that it is given to."""
    is_value: bool
    setting: Setting | None
    """Of the field that a value is given to, or that the keys lead to."""
    expected: t.FieldType | None
    written: frozenset[str]
    """Keys that the record has elsewhere."""
    statement: tuple[str, ...]
    """Kinds of the tokens of the statement before the word."""
    tags: tuple[str, ...] = ()
    """The components whose fields are meant, where a record has one."""


Resolve = Callable[[str], syntax.Expr | None]
"""The expression behind a `let`, from this or an imported file."""


def context_at(file: str, text: str, at: int, resolve: Resolve = lambda name: None) -> Context:
    """The context of an offset."""
    tokens = lex(file, text).tokens
    frames = _frames(tokens, at)
    return _Reader(tokens, resolve).context(frames, _word(tokens, at), at)


def resolver(symbols: Sequence[Symbol], imported: Callable[[Symbol], Symbol | None]) -> Resolve:
    """Follows names through `let`s; `imported` finds the declaration behind an imported name."""

    def resolve(name: str) -> syntax.Expr | None:
        for symbol in symbols:
            if symbol.target.name == name:
                found = imported(symbol) if symbol.kind == "imported" else symbol
                item = found.item if found is not None else None
                return item.value if isinstance(item, syntax.Let) else None
        return None

    return resolve


def _word(tokens: Tokens, at: int) -> Span:
    """The name that an offset touches, up to its end; else the empty span there."""
    for i, kind in enumerate(tokens.kinds):
        if tokens.starts[i] < at <= tokens.ends[i] and (kind == "NAME" or tokens.word(i).isidentifier()):
            return tokens.span(i)
        if tokens.starts[i] >= at:
            break
    return Span(tokens.file, at, at)


def _frames(tokens: Tokens, at: int) -> list[_Frame]:
    """The open brackets before an offset, outermost first; the first frame is the file."""
    frames = [_Frame("")]
    for i, kind in enumerate(tokens.kinds):
        if tokens.ends[i] > at or (tokens.ends[i] == at and tokens.word(i).isidentifier()):
            break
        top = frames[-1]
        if kind in CLOSER:
            frames.append(_Frame(kind, list(top.statement)))
        elif kind in OPENER:
            if len(frames) > 1 and top.opener == OPENER[kind]:
                frames.pop()
                frames[-1].statement.append(i)
        elif kind == "COMMA" or (kind == "NL" and _ends_statement(tokens, top)):
            top.written += _keys(tokens, top.statement)[:1]
            top.statement.clear()
        elif kind != "NL":
            top.statement.append(i)
    return frames


def _ends_statement(tokens: Tokens, frame: _Frame) -> bool:
    if frame.opener in ("LSQB", "LPAR"):
        return False
    return not frame.statement or tokens.kinds[frame.statement[-1]] not in _GOES_ON


def _is_expression(words: Sequence[str]) -> bool:
    """Whether a statement that sets no field goes on with an expression."""
    if words[:1] in (["LET"], ["PARAM"]):
        return "EQ" in words
    return words[:1] in (["ASSERT"], ["WARN"], ["EXCLUDE"]) or (words[:1] == ["EXPECT"] and words[1:2] != ["ERROR"])


def _keys(tokens: Tokens, statement: Sequence[int]) -> list[str]:
    """The names of the path that a statement sets; empty for other statements."""
    names = []
    for position, i in enumerate(statement):
        kind = tokens.kinds[i]
        if position % 2 == 0 and (kind == "NAME" or kind in SOFT_KINDS):
            names.append(tokens.word(i))
        elif kind in ("EQ", "PLUSEQ"):
            return names
        elif kind != "DOT":
            break
    return []


def _path(tokens: Tokens, dotted: Sequence[int]) -> list[str]:
    """The names of a dotted path."""
    return [tokens.word(i) for i in dotted if tokens.kinds[i] != "DOT"]


@frozen
class _Reader:
    tokens: Tokens
    resolve: Resolve

    def context(self, frames: list[_Frame], word: Span, at: int) -> Context:
        place: Place = Place()
        tags: tuple[str, ...] = ()
        for frame in frames[1:]:
            place, tags = self._inside(place, frame)
        last = frames[-1]
        words = [self.tokens.kinds[i] for i in last.statement]
        keys = _keys(self.tokens, last.statement)
        written = frozenset((*last.written, *self._written_behind(at)))
        if words[:1] == ["AXIS"] and "IN" in words:
            keys = _path(self.tokens, last.statement[1 : words.index("IN")])
        if last.opener in ("LSQB", "LPAR") or keys or _is_expression(words):
            setting = setting_at(place.block, keys) if keys else None
            expected = setting.type if setting is not None else place.type
            return Context(place, word, tuple(keys), True, setting, expected, written, tuple(words), tags)
        path = _path(self.tokens, last.statement[1:] if words[:1] in (["DELETE"], ["AXIS"]) else last.statement)
        is_path = words[-1:] == ["DOT"]
        setting = setting_at(place.block, path) if is_path and path else None
        return Context(place, word, tuple(path) if is_path else (), False, setting, None, written, tuple(words), tags)

    def _written_behind(self, at: int) -> list[str]:
        """Keys of the same record behind the place."""
        depth = 0
        found: list[str] = []
        statement: list[int] = []
        for i, kind in enumerate(self.tokens.kinds):
            if self.tokens.starts[i] < at:
                continue
            if kind in CLOSER:
                depth += 1
            elif kind in OPENER:
                depth -= 1
                if depth < 0:
                    break
            elif depth == 0 and kind in ("NL", "COMMA"):
                found += _keys(self.tokens, statement)[:1]
                statement = []
                continue
            if depth == 0:
                statement.append(i)
        return found + _keys(self.tokens, statement)[:1]

    # frames -----------------------------------------------------------------------------------------------------------

    def _inside(self, outer: Place, frame: _Frame) -> tuple[Place, tuple[str, ...]]:
        """The place inside of a bracket, and the components whose fields stand there."""
        kinds = [self.tokens.kinds[i] for i in frame.head]
        first = kinds[0] if kinds else ""
        if first in _PLANS and frame.opener == "LBRACE" and "EQ" not in kinds:
            kind = {"SWEEP": "sweep", "TEST": "test"}.get(first, "plan")
            return Place(Plan, "", None, kind), ()
        keys = _keys(self.tokens, frame.head)
        if first == "AXIS" and "IN" in kinds:
            keys = _path(self.tokens, frame.head[1 : kinds.index("IN")])
            setting = setting_at(outer.block, keys)
            return Place(None, ".".join(keys), setting.type if setting is not None else None, "list"), ()
        if not keys and outer.block is not None and len(kinds) >= 2 and kinds[:2] == ["NAME", "NAME"]:
            node = settings_of(outer.block).get(self.tokens.word(frame.head[0]))
            if node is not None and isinstance(node.type, t.NodesOf):
                path = f"{node.name}.{self.tokens.word(frame.head[1])}"
                return Place(node.type.block, path, None, "node"), ()
        if outer.kind in ("list", "map"):
            name = keys[0] if keys else self._tag(frame.head) or "?"
            return self._record(outer.type, frame, f"{outer.path}.{name}")
        setting = setting_at(outer.block, keys) if keys else None
        path = ".".join(filter(None, (outer.path, *keys)))
        return self._record(setting.type if setting is not None else None, frame, path)

    def _record(self, type_: t.FieldType | None, frame: _Frame, path: str) -> tuple[Place, tuple[str, ...]]:
        found = structural(type_) if type_ is not None else None
        if frame.opener != "LBRACE":
            items = next((a.item for a in alternatives(type_) if isinstance(a, t.ListOf)), None) if type_ else None
            return Place(None, path, items, "list"), ()
        if isinstance(found, t.Block):
            return Place(found.block, path, None, "record"), ()
        if isinstance(found, t.MapOf):
            return Place(None, path, found.value, "map"), ()
        tag = self._tag(frame.head)
        kind = found.kind if isinstance(found, t.Component) else next(iter(kinds_of(tag or "")), "")
        known = components(kind) if kind else {}
        block = known.get(tag or "") or (next(iter(known.values())) if len(known) == 1 else None)
        if block is None and isinstance(type_, t.ListOf) and isinstance(type_.item, t.Component):
            block = components(type_.item.kind).get(tag or "")
        tags = (str(block.tag),) if block is not None else ()  # type: ignore[attr-defined]
        return Place(block, path, None, "record"), tags

    def _tag(self, head: Sequence[int]) -> str | None:
        """The component before `{`: written there, or what a `let` begins with."""
        if not head or self.tokens.kinds[head[-1]] not in ("NAME", *SOFT_KINDS):
            return None
        name = self.tokens.word(head[-1])
        for _ in range(16):
            if kinds_of(name):
                return name
            value = self.resolve(name)
            while isinstance(value, syntax.Amend):
                value = value.base
            if not isinstance(value, syntax.NameRef):
                return None
            name = value.name
        return None


def setting_at(block: type | None, keys: Sequence[str]) -> Setting | None:
    """The field at a path below a block. Where a component decides, the first one that has the field."""
    if block is None or not keys:
        return None
    setting = settings_of(block).get(keys[0])
    if setting is None or len(keys) == 1:
        return setting
    found = (setting_at(inner, rest) for inner, rest in below(setting, keys[1:]))
    return next((one for one in found if one is not None), None)


def blocks_at(block: type | None, keys: Sequence[str]) -> list[type]:
    """The blocks whose fields can stand at a path below a block."""
    if block is None:
        return []
    if not keys:
        return [block]
    setting = settings_of(block).get(keys[0])
    inner = below(setting, keys[1:]) if setting is not None else []
    return [found for one, rest in inner for found in blocks_at(one, rest)]


def below(setting: Setting, keys: Sequence[str]) -> list[tuple[type, Sequence[str]]]:
    """The blocks that a path may go on in, each with what is left of it."""
    found = structural(setting.type)
    match found:
        case t.Block(block=block):
            return [(block, keys)]
        case t.NodesOf(block=block):
            return [(block, keys[1:])] if keys else []
        case t.Component(kind=kind):
            return [(block, keys) for block in components(kind).values()]
        case t.MapOf(value=t.Component(kind=kind)):
            return [(block, keys[1:]) for block in components(kind).values()] if keys else []
        case t.ListOf(item=t.Component(kind=kind)):
            return [(components(kind)[keys[0]], keys[1:])] if keys and keys[0] in components(kind) else []
    return []
