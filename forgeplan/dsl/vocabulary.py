"""Which words does the schema know, and where is each a field?"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from forgeplan.spec import types as t
from forgeplan.spec.plan import Plan
from forgeplan.spec.registry import components, kinds, kinds_of
from forgeplan.spec.setting import called, settings_of


def alternatives(type_: t.FieldType) -> tuple[t.FieldType, ...]:
    """The type itself, or what an `AnyOf` chooses from, without nesting."""
    if not isinstance(type_, t.AnyOf):
        return (type_,)
    return tuple(inner for a in type_.alternatives for inner in alternatives(a))


@cache
def structural(type_: t.FieldType) -> t.FieldType | None:
    """The alternative whose parts have paths of their own: record, component, map, nodes, list of components."""
    for a in alternatives(type_):
        if isinstance(a, t.Block | t.Component | t.MapOf | t.NodesOf):
            return a
        if isinstance(a, t.ListOf) and isinstance(a.item, t.Component):
            return a
    return None


def optional(type_: t.FieldType) -> bool:
    return any(isinstance(a, t.Nothing) for a in alternatives(type_))


def members(type_: t.FieldType | None) -> list[str]:
    """The bare words that a field of this type takes."""
    found: list[str] = []
    for a in alternatives(type_) if type_ is not None else ():
        if isinstance(a, t.OneOf):
            found += a.members
        elif isinstance(a, t.Component):
            found += components(a.kind)
        elif isinstance(a, t.ListOf):
            found += members(a.item)
        elif isinstance(a, t.MapOf):
            found += members(a.value)
    return found


@cache
def schema_words() -> dict[str, str]:
    """Bare members, node kinds and components, with what each means; no `let` or `param` may take one."""
    words: dict[str, str] = {}
    for kind in kinds():
        for name in components(kind):
            words.setdefault(name, a_kind(kind))
    for path, block in _blocks():
        for name, setting in settings_of(block).items():
            if isinstance(setting.type, t.NodesOf):
                words.setdefault(name, "a kind of node")
            for a in _flat(setting.type):
                if isinstance(a, t.OneOf):
                    for member in a.members:
                        words.setdefault(member, f"a value of `{_join(path, name)}`")
    return words


@cache
def foreign_members() -> dict[str, str]:
    """What other tools call bare members, in lower case, with our word for each."""
    return {
        alias.lower(): ours
        for _, block in _blocks()
        for setting in settings_of(block).values()
        for a in _flat(setting.type)
        if isinstance(a, t.OneOf)
        for alias, ours in a.aliases
    }


def a_kind(kind: str) -> str:
    """`an optimizer`, `a source`."""
    word = kind.replace("_", " ")
    return f"{'an' if word[0] in 'aeiou' else 'a'} {word}"


def kinds_in_words(name: str) -> str:
    return " and ".join(a_kind(kind) for kind in kinds_of(name))


@cache
def places_of(name: str) -> tuple[str, ...]:
    """The paths at which `name` is a field, or else what other tools call one, shortest first: `optimizer.lr`."""
    found = [_join(path, name) for path, block in _blocks() if name in settings_of(block)]
    found = found or [_join(path, field) for path, block in _blocks() if (field := called(name, block))]
    return tuple(sorted(dict.fromkeys(found), key=lambda p: (p.count("."), p)))


@cache
def all_fields() -> tuple[str, ...]:
    return tuple(sorted({name for _, block in _blocks() for name in settings_of(block)}))


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


@cache
def _blocks() -> tuple[tuple[str, type], ...]:
    """Every block of the schema with the path it can stand at; entries of maps and nodes are `NAME`."""
    return tuple(_walk("", Plan, ()))


def _walk(path: str, block: type, above: tuple[type, ...]) -> Iterator[tuple[str, type]]:
    if block in above:
        return
    yield path, block
    for name, setting in settings_of(block).items():
        at = _join(path, name)
        for a in _flat(setting.type):
            below = f"{at}.NAME" if isinstance(structural(setting.type), t.MapOf | t.NodesOf) else at
            if isinstance(a, t.Block | t.NodesOf):
                yield from _walk(below, a.block, (*above, block))
            elif isinstance(a, t.Component):
                for tag, inner in components(a.kind).items():
                    listed = isinstance(structural(setting.type), t.ListOf)
                    yield from _walk(f"{at}.{tag}" if listed else below, inner, (*above, block))


def _flat(type_: t.FieldType) -> Iterator[t.FieldType]:
    for a in alternatives(type_):
        if isinstance(a, t.ListOf):
            yield from _flat(a.item)
        elif isinstance(a, t.MapOf):
            yield from _flat(a.value)
        else:
            yield a
