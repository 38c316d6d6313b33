"""What can be written at a place?

The text alone decides, so that an answer comes at once and also in a file that does not parse.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

import attrs
from attrs import frozen
from lsprotocol import types as lsp

from forgeplan.compiler import derived_values
from forgeplan.diagnostics.codes import registered
from forgeplan.diagnostics.pages import all_codes
from forgeplan.dsl import syntax
from forgeplan.dsl.functions import FUNCTIONS
from forgeplan.dsl.library import STD
from forgeplan.dsl.params import TYPES
from forgeplan.dsl.symbols import Symbol
from forgeplan.dsl.units import UNITS
from forgeplan.dsl.vocabulary import alternatives, structural
from forgeplan.lsp import docs
from forgeplan.lsp.context import Context, blocks_at, context_at, setting_at
from forgeplan.lsp.fitting import fits
from forgeplan.lsp.names import Names
from forgeplan.lsp.places import chosen, job_of, view_at
from forgeplan.lsp.snapshot import Snapshot
from forgeplan.lsp.workspace import Workspace
from forgeplan.spec import types as t
from forgeplan.spec.plan import Plan
from forgeplan.spec.registry import components
from forgeplan.spec.setting import Setting, settings_of

_KIND = lsp.CompletionItemKind
_SNIPPET = lsp.InsertTextFormat.Snippet

_PLACEHOLDER = re.compile(r"\$\{\d+:([^}]*)\}|\$\d")

_CHAIN = re.compile(r"(?<![\w.])([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\.\w*\Z")
"""A dotted path that is being written; the group is what stands before its last dot."""
_EXPECT_ERROR = re.compile(r"\bexpect[ \t]+error[ \t]+\w*\Z")
_LONGEST = 400
"""Characters of a dotted path that are looked at."""

_FILE_STATEMENTS = {
    "plan": "plan ${1:name} {\n  $0\n}",
    "plan … extends": "plan ${1:name} extends ${2:base} {\n  $0\n}",
    "partial plan": "partial plan ${1:name} {\n  $0\n}",
    "sweep": "sweep ${1:name} over ${2:plan} {\n  axis ${3:seed} in ${4:0 .. 2}\n}",
    "test": 'test "${1:what holds}" for ${2:plan} {\n  expect ${0:model.params > 0}\n}',
    "let": "let ${1:name} = $0",
    "param": "param ${1:name}: ${2:Rate} = $0",
    "import": 'import "$1" as ${2:name}',
    "from": 'from "$1" import $0',
}
_PLAN_STATEMENTS = {
    "let": "let ${1:name} = $0",
    "assert": 'assert $1 else "$2"',
    "warn": 'warn $1 else "$2"',
    "delete": "delete $0",
    "profile": "profile ${1:name} {\n  $0\n}",
}
_SWEEP_STATEMENTS = {
    "axis": "axis ${1:seed} in ${0:0 .. 2}",
    "zip": "zip {\n  axis $1 in [$2]\n  axis $3 in [$4]\n}",
    "exclude": "exclude $0",
    "limit": "limit = ${0:12} runs",
}
_TEST_STATEMENTS = {"expect": "expect $0", "expect error": "expect error ${1:FP0412} with { $0 }"}


def completion(snapshot: Snapshot, at: int, workspace: Workspace, snippets: bool = True) -> lsp.CompletionList:
    """Everything that fits, the most likely first. Never an analysis: it would come too late.

    Without `snippets`, what is to be filled in stands as its example.
    """
    items = _in_order(_items(snapshot, at, workspace))
    for item in items if not snippets else ():
        item.insert_text = _PLACEHOLDER.sub(r"\1", item.insert_text) if item.insert_text else None
        item.insert_text_format = None
    return lsp.CompletionList(False, items)


def _items(snapshot: Snapshot, at: int, workspace: Workspace) -> Iterable[lsp.CompletionItem]:
    comment = _in_comment(snapshot, at)
    if comment is not None:
        return _codes(is_lint=True) if "allow" in snapshot.text[comment:at] else ()
    if _in_import(snapshot, at) is not None:
        return _modules(snapshot, workspace)
    if _in_text(snapshot, at):
        return ()
    return _Asked(snapshot, at, workspace, context_at(snapshot.name, snapshot.text, at)).items()


def _in_order(items: Iterable[lsp.CompletionItem]) -> list[lsp.CompletionItem]:
    """Each label once, sorted as they came."""
    found: dict[str, lsp.CompletionItem] = {}
    for item in items:
        found.setdefault(item.label, item)
    for number, item in enumerate(found.values()):
        item.sort_text = f"{number:04}"
    return list(found.values())


def _item(
    label: str, kind: lsp.CompletionItemKind, detail: str = "", doc: str = "", insert: str = ""
) -> lsp.CompletionItem:
    return lsp.CompletionItem(
        label,
        kind=kind,
        detail=detail or None,
        documentation=lsp.MarkupContent(lsp.MarkupKind.Markdown, doc) if doc else None,
        insert_text=insert or None,
        insert_text_format=_SNIPPET if "$" in insert else None,
    )


@frozen(eq=False)
class _Asked:
    """One question for completions."""

    snapshot: Snapshot
    at: int
    workspace: Workspace
    context: Context

    def items(self) -> Iterator[lsp.CompletionItem]:
        words = self.context.statement
        first, last = words[:1], words[-1:]
        if first == ("FROM",) and "IMPORT" in words:
            yield from self._exported()
        elif first == ("EXPECT",) and _EXPECT_ERROR.search(self.snapshot.text, 0, self.at):
            yield from _codes(is_lint=False)
        elif words[-3::2] == ("EXTENDS", "DOT") or words[-3::2] == ("OVER", "DOT"):
            yield from self._plans_of_module()
        elif last in (("EXTENDS",), ("OVER",)) or (last == ("FOR",) and first == ("TEST",)):
            yield from self._symbols(("plan", "imported", "import"))
        elif last == ("AFTER",):
            yield from self._entries(self.context.place.path or "eval")
        elif first == ("PARAM",) and last == ("COLON",):
            yield from (_item(name, _KIND.Class, TYPES[name].describe()) for name in TYPES)
        elif last == ("NUMBER",):
            yield from self._units()
        elif self.context.is_value:
            yield from self._values()
        elif self.context.place.kind == "file":
            yield from self._statements(_FILE_STATEMENTS)
        else:
            yield from self._keys()

    # keys -------------------------------------------------------------------------------------------------------------

    def _keys(self) -> Iterator[lsp.CompletionItem]:
        context, place = self.context, self.context.place
        if context.keys:
            yield from self._deeper()
            return
        if place.kind == "map":
            if place.path == "mixture":
                yield from (_item(name, _KIND.Field, insert=f"{name} = $0") for name in self._names_of("sources"))
            return
        is_path = context.statement[-1:] in (("DELETE",), ("AXIS",))
        if place.block is not None and (is_path or place.kind not in ("sweep", "test")):
            ready = [s for s in settings_of(place.block).values() if s.name not in context.written]
            for setting in sorted(ready, key=lambda s: not s.required):
                yield _key(setting, place.path, is_path)
        if is_path:
            yield from self._symbols(("param",))
        elif place.kind == "plan":
            yield from self._statements(_PLAN_STATEMENTS)
        elif place.kind == "sweep":
            yield from self._statements(_SWEEP_STATEMENTS)
        elif place.kind == "test":
            yield from self._statements(_TEST_STATEMENTS)

    def _deeper(self) -> Iterator[lsp.CompletionItem]:
        """Behind `model.`: the fields of what stands there, in any component that may."""
        context = self.context
        path = ".".join(filter(None, (context.place.path, *context.keys)))
        yield from self._below(context.place.block, context.keys, path)

    def _below(self, block: type | None, keys: Sequence[str], path: str) -> Iterator[lsp.CompletionItem]:
        """What a path goes on with: names of entries, transforms, fields."""
        setting = setting_at(block, keys)
        type_ = structural(setting.type) if setting is not None else None
        if isinstance(type_, t.NodesOf | t.MapOf):
            map = type_.keys if isinstance(type_, t.MapOf) else ""
            yield from (_item(name, _KIND.Reference) for name in self._names_of(map or keys[-1]))
        elif isinstance(type_, t.ListOf) and isinstance(type_.item, t.Component):
            yield from (_item(tag, _KIND.Class) for tag in components(type_.item.kind))
        view = view_at(self.snapshot, self.at)
        job = job_of(self.snapshot, *view) if view is not None else None
        for inner in chosen(blocks_at(block, keys), path, job):
            yield from (_key(one, path, True) for one in settings_of(inner).values())

    # values -----------------------------------------------------------------------------------------------------------

    def _values(self) -> Iterator[lsp.CompletionItem]:
        chain = _CHAIN.search(self.snapshot.text, max(0, self.at - _LONGEST), self.at)
        if chain is not None:
            yield from self._members(chain.group(1))
            return
        expected = self.context.expected
        yield from _fitting(expected)
        for a in alternatives(expected) if expected is not None else ():
            if isinstance(a, t.NameIn):
                yield from (_item(name, _KIND.Reference, f"of {a.map}") for name in self._names_of(a.map))
        yield from self._symbols(("let", "param", "variable", "imported", "import"), expected)
        if self.context.statement:
            yield from (_item(name, _KIND.Function, insert=f"{name}($0)") for name in FUNCTIONS)
            yield _item("if", _KIND.Keyword, insert="if $1 then $2 else $3")
            roots = dict.fromkeys(path.split(".")[0] for path in derived_values())
            yield from (_item(root, _KIND.Struct, "read from the plan") for root in roots)

    def _members(self, base: str) -> Iterator[lsp.CompletionItem]:
        """Behind `lib.` in an expression its names; behind `model.` or `self.` fields and computed values."""
        symbol = next((s for s in self._visible() if s.kind == "import" and s.target.name == base), None)
        if symbol is not None and isinstance(symbol.item, syntax.Import):
            yield from self._of_module(_written(symbol.item.source))
            return
        place = self.context.place
        first, *rest = base.split(".")
        if first == "self":
            yield from self._below(place.block, rest, ".".join(filter(None, (place.path, *rest))))
            return
        for path, value in derived_values().items():
            if path.startswith(f"{base}."):
                yield _item(path.removeprefix(f"{base}."), _KIND.Value, f"computed: {value.doc}")
        yield from self._below(Plan, [first, *rest], base)

    def _units(self) -> Iterator[lsp.CompletionItem]:
        expected = self.context.expected
        wanted = {
            d
            for a in (alternatives(expected) if expected is not None else ())
            for d in ((a.dimension,) if isinstance(a, t.Measure) else getattr(a, "dimensions", ()))
        }
        for unit, (factor, dimension) in UNITS.items():
            if not wanted or dimension in wanted:
                yield _item(unit, _KIND.Unit, f"{factor} {dimension}" if factor != 1 else str(dimension))

    # names ------------------------------------------------------------------------------------------------------------

    def _visible(self) -> list[Symbol]:
        return self.snapshot.index.visible(self.at)

    def _symbols(self, kinds: tuple[str, ...], expected: t.FieldType | None = None) -> Iterator[lsp.CompletionItem]:
        """Names that can be read here, those nearest first, without those that would be no value of the type."""
        declared: dict[str, Symbol | None] = {}

        def find(name: str) -> Symbol | None:
            return declared.get(name)

        for symbol in self._visible():
            declared[symbol.target.name] = self._declared(symbol)
        for symbol in reversed(self._visible()):
            behind = declared[symbol.target.name] or symbol
            is_of_kind = symbol.kind in kinds and behind.kind in kinds
            if is_of_kind and not self._declares(symbol) and fits(behind, expected, find):
                kind = {"plan": _KIND.Class, "import": _KIND.Module, "param": _KIND.Variable}.get(symbol.kind)
                yield _item(symbol.target.name, kind or _KIND.Constant, symbol.kind, symbol.doc)

    def _declares(self, symbol: Symbol) -> bool:
        """Whether the place is inside of the declaration itself, or right behind what there is of it."""
        between = self.snapshot.text[symbol.item.span.end : self.at]
        is_behind = symbol.span.end <= self.at and between.strip(" \t=") == ""
        return symbol.kind in ("let", "param") and is_behind

    def _declared(self, symbol: Symbol) -> Symbol | None:
        """The symbol itself, or what an import leads to."""
        if symbol.kind != "imported":
            return symbol
        found = Names(self.workspace).declaration(symbol.target, self.snapshot)
        return found[1] if found is not None else None

    def _names_of(self, map: str) -> list[str]:
        """Entries of a map or kind of node, in this file."""
        owners = (s for s in self.snapshot.index.symbols if s.kind == "entry" and s.target.owner.startswith(f"{map}:"))
        return list(dict.fromkeys(symbol.target.name for symbol in owners))

    def _entries(self, map: str) -> Iterator[lsp.CompletionItem]:
        return (_item(name, _KIND.Reference) for name in self._names_of(map.split(".")[0]))

    def _exported(self) -> Iterator[lsp.CompletionItem]:
        line = self.snapshot.text[: self.at].rpartition("\n")[2]
        parts = line.split('"')
        if len(parts) > 2:
            yield from self._of_module(parts[1])

    def _plans_of_module(self) -> Iterator[lsp.CompletionItem]:
        chain = _CHAIN.search(self.snapshot.text, max(0, self.at - _LONGEST), self.at)
        for symbol in self._visible():
            if chain and symbol.target.name == chain.group(1) and isinstance(symbol.item, syntax.Import):
                yield from self._of_module(_written(symbol.item.source), ("plan",))

    def _of_module(
        self, written: str, kinds: tuple[str, ...] = ("let", "param", "plan")
    ) -> Iterator[lsp.CompletionItem]:
        there = Names(self.workspace).imported(self.snapshot.name, written)
        if there is not None:
            symbols = [s for s in there.index.symbols if s.kind in kinds and not s.target.owner]
            yield from (_item(s.target.name, _KIND.Constant, f"{s.kind} of {written}", s.doc) for s in symbols)

    def _statements(self, snippets: dict[str, str]) -> Iterator[lsp.CompletionItem]:
        return (_item(label, _KIND.Keyword, insert=text) for label, text in snippets.items())


def _key(setting: Setting, path: str, is_path: bool) -> lsp.CompletionItem:
    full = f"{path}.{setting.name}" if path else setting.name
    if isinstance(setting.type, t.NodesOf) and not is_path:
        needed = [s for s in settings_of(setting.type.block).values() if s.required]
        inner = ", ".join(f"{s.name} = ${{{number}:{s.example}}}" for number, s in enumerate(needed, 2))
        insert = f"{setting.name} ${{1:name}} {{ {inner} }}"
    else:
        insert = "" if is_path else f"{setting.name} = $0"
    detail = f"{setting.type.describe()}, default {docs.default_of(setting)}".replace("`", "")
    return _item(setting.name, _KIND.Field, detail, docs.of_setting(full, setting), insert)


def _fitting(expected: t.FieldType | None) -> Iterator[lsp.CompletionItem]:
    """Words that a field of the type takes."""
    for a in alternatives(expected) if expected is not None else ():
        match a:
            case t.OneOf(members=members):
                yield from (_item(member, _KIND.EnumMember) for member in members)
            case t.Component(kind=kind):
                yield from (_component(kind, tag) for tag in components(kind))
            case t.ListOf(item=item):
                for inner in _fitting(item):
                    yield attrs.evolve(inner, insert_text=f"[{inner.insert_text or inner.label}]")
            case t.Bool():
                yield from (_item(word, _KIND.Keyword) for word in ("true", "false"))
            case t.Nothing():
                yield _item("none", _KIND.Keyword)


def _component(kind: str, tag: str) -> lsp.CompletionItem:
    needed = [s for s in settings_of(components(kind)[tag]).values() if s.required]
    inner = ", ".join(f"{s.name} = ${{{number}:{s.example}}}" for number, s in enumerate(needed, 1))
    insert = f"{tag} {{ {inner} }}" if needed else tag
    return _item(tag, _KIND.Class, docs.summary(components(kind)[tag]), docs.of_component(kind, tag), insert)


def _codes(is_lint: bool) -> Iterator[lsp.CompletionItem]:
    for code in all_codes():
        if is_lint != code.startswith("FP"):
            known = registered().get(code)
            yield _item(code, _KIND.Event, known.rule if known else "")


def _modules(snapshot: Snapshot, workspace: Workspace) -> Iterator[lsp.CompletionItem]:
    for module in sorted(STD.glob("*.forge")):
        yield _item(f"std:{module.stem}", _KIND.Module, "the library")
    folder = workspace.path_of(snapshot.uri).parent
    for one in workspace.documents():
        path = workspace.path_of(one.uri)
        if path.is_relative_to(folder) and one.uri != snapshot.uri:
            yield _item(path.relative_to(folder).as_posix(), _KIND.File)


def _in_comment(snapshot: Snapshot, at: int) -> int | None:
    """Where the comment around an offset begins."""
    found = (c.span for c in snapshot.parsed.comments if c.span.start < at <= c.span.end)
    return next((span.start for span in found), None)


def _in_import(snapshot: Snapshot, at: int) -> int | None:
    """Where the path of an import around an offset begins."""
    start = snapshot.text.rfind("\n", 0, at) + 1
    line = snapshot.text[start:at]
    is_path = line.split()[:1] in (["from"], ["import"]) and line.count('"') == 1
    return start + line.index('"') if is_path else None


def _in_text(snapshot: Snapshot, at: int) -> bool:
    """Whether the offset is inside of a text, and not in an expression that it embeds."""
    start = snapshot.text.rfind("\n", 0, at) + 1
    line = snapshot.text[start:at]
    return line.count('"') % 2 == 1 and "${" not in line.rpartition('"')[2]


def _written(source: syntax.Text) -> str:
    return "".join(part for part in source.parts if isinstance(part, str))
