"""What does each name of a file stand for, and where is it declared? From the text alone, whatever else is wrong in it.

An index is of one file. A target says what a name means as that file sees it: `home` follows imports to the file that
declares it. Names of fields, components and members belong to the schema, and are no symbols.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from attrs import define, field, frozen

from forgeplan.diagnostics.span import Span
from forgeplan.dsl import syntax
from forgeplan.dsl.vocabulary import alternatives, structural
from forgeplan.spec import types as t
from forgeplan.spec.plan import Plan
from forgeplan.spec.setting import Setting, settings_of

_FIELDS = settings_of(Plan)


@frozen
class Target:
    """What a name stands for: the declaration of `name` in this file, or in the file that `module` imports.

    `owner` is "" for a name of the file; for an entry of a map it is the map and the plan at the root of those that
    extend one another, `sources:base`; for a name inside of a body, the place of its declaration.
    """

    name: str
    module: str = ""
    owner: str = ""


@frozen
class Occurrence:
    span: Span
    target: Target


@frozen
class Symbol:
    """A declaration. `kind` is let, param, plan, import, imported, profile, sweep, entry or variable.

    `scope` is the text in which the name can be read.
    """

    target: Target
    kind: str
    span: Span
    item: syntax.Node
    scope: Span

    @property
    def doc(self) -> str:
        return self.item.doc if isinstance(self.item, syntax.Item) else ""


@define(eq=False)
class Index:
    """The symbols of one file with all their occurrences, declarations among them."""

    file: str
    symbols: list[Symbol] = field(factory=list)
    occurrences: list[Occurrence] = field(factory=list)
    names: dict[str, Target] = field(factory=dict)
    """What can be imported from the file: its own names, and those it imports itself."""
    bases: dict[str, Target | None] = field(factory=dict)
    """By plan: what it extends."""
    free: list[tuple[str, Span]] = field(factory=list)
    """Words of values that no declaration around them binds: fields, members, functions, entries. One would."""

    def at(self, offset: int) -> Occurrence | None:
        """The occurrence that an offset touches."""
        return next((o for o in self.occurrences if o.span.start <= offset <= o.span.end), None)

    def of(self, target: Target) -> list[Occurrence]:
        return [one for one in self.occurrences if one.target == target]

    def declared(self, target: Target) -> Symbol | None:
        return next((one for one in self.symbols if one.target == target), None)

    def visible(self, offset: int) -> list[Symbol]:
        """What can be read at a place: names of the file, and of the bodies around it."""
        return [one for one in self.symbols if one.scope.start <= offset <= one.scope.end]


MOST_STEPS = 64
"""Imports and bases that are followed: those of a faulty file may lead in a circle."""

Load = Callable[[str, str], Index | None]
"""The index of the file that a file (first) imports by a path (second)."""


def steps(target: Target, index: Index, load: Load) -> Iterator[tuple[Index, Target]]:
    """What a name means in its file, in the one it is imported from, and, of an entry, in the bases of its plan."""
    for _ in range(MOST_STEPS):
        if target.module:
            further = load(index.file, target.module)
            if further is None:
                return
            index, target = further, Target(target.name, "", target.owner)
            target = target if target.owner else index.names.get(target.name, target)
            continue
        yield index, target
        root = _root(target, index)
        if root is None:
            return
        target = root


def home(target: Target, index: Index, load: Load) -> tuple[Index, Target] | None:
    """Where a name begins: names that begin alike are one. None where an import leads nowhere."""
    found = list(steps(target, index, load))
    return found[-1] if found and _root(found[-1][1], found[-1][0]) is None else None


def declaration(target: Target, index: Index, load: Load) -> tuple[Index, Symbol] | None:
    """The nearest declaration of a name with the file that has it; None where there is none."""
    for where, meant in steps(target, index, load):
        symbol = where.declared(meant)
        if symbol is not None:
            return where, symbol
    return None


def _root(target: Target, index: Index) -> Target | None:
    """An entry as the base of its plan sees it, where the plan has a base."""
    map, _, plan = target.owner.partition(":")
    base = index.bases.get(plan) if plan else None
    return Target(target.name, base.module, f"{map}:{base.name}") if base is not None else None


def index_of(file: syntax.File, name: str) -> Index:
    """The index of a parsed file."""
    index = Index(name)
    _Walk(index, file.span).file(file.items)
    return index


Names = Mapping[str, Target]


@define
class _Walk:
    index: Index
    whole: Span
    modules: dict[str, str] = field(factory=dict)
    """By alias: the path it was imported from."""

    def file(self, items: tuple[syntax.Item, ...]) -> None:
        for item in items:
            self._declare(item)
        plans = {item.name.text for item in items if isinstance(item, syntax.Plan)}
        names = {name: target for name, target in self.index.names.items() if name not in plans}
        for item in items:
            self._item(item, names, "")

    # declarations -----------------------------------------------------------------------------------------------------

    def _declare(self, item: syntax.Item) -> None:
        match item:
            case syntax.Let(name=name):
                self._name(name, "let", item)
            case syntax.Param(name=name):
                self._name(name, "param", item)
            case syntax.Sweep(name=name):
                self._symbol(name, "sweep", item, Target(name.text, owner="sweep"))
            case syntax.Plan(name=name, base=base):
                self._name(name, "plan", item)
                self.index.bases[name.text] = None if base is None else self._named(base)
            case syntax.Import(source=source, name=name):
                self.modules[name.text] = _written(source)
                self._name(name, "import", item)
            case syntax.FromImport(source=source, names=names):
                for name in names:
                    target = Target(name.text, _written(source))
                    self._symbol(name, "imported", item, target)
                    self.index.names.setdefault(name.text, target)

    def _name(self, name: syntax.Name, kind: str, item: syntax.Item) -> None:
        target = Target(name.text)
        self._symbol(name, kind, item, target)
        self.index.names.setdefault(name.text, target)

    def _symbol(
        self, name: syntax.Name, kind: str, item: syntax.Node, target: Target, scope: Span | None = None
    ) -> None:
        self.index.symbols.append(Symbol(target, kind, name.span, item, scope or self.whole))
        self._occurs(name.span, target)

    def _occurs(self, span: Span, target: Target) -> None:
        self.index.occurrences.append(Occurrence(span, target))

    def _inside(self, body: syntax.Record, names: Names) -> Names:
        """The names in a body: its own `let`s before those around it."""
        own = {}
        for item in body.items:
            if isinstance(item, syntax.Let):
                target = Target(item.name.text, owner=f"@{item.name.span.start}")
                self._symbol(item.name, "let", item, target, body.span)
                own[item.name.text] = target
        return {**names, **own} if own else names

    # statements -------------------------------------------------------------------------------------------------------

    def _item(self, item: syntax.Item, names: Names, plan: str, record: type | None = None) -> None:
        """One statement; `plan` is that whose fields it sets, `record` the block, if it is not the plan itself."""
        match item:
            case syntax.Plan(name=name, base=base, body=body):
                if base is not None:
                    self._path_of_plan(base)
                self._body(body, names, name.text)
            case syntax.Profile(name=name, body=body):
                self._symbol(name, "profile", item, Target(name.text, owner=f"profile:{plan}"), body.span)
                self._body(body, names, plan)
            case syntax.Sweep(base=base, items=items):
                self._path_of_plan(base)
                inner = self._inside(syntax.Record(items, span=item.span), names)
                for one in items:
                    self._item(one, inner, base.names[-1].text)
            case syntax.Test(base=base, items=items):
                self._path_of_plan(base)
                for one in items:
                    self._item(one, names, base.names[-1].text)
            case syntax.ExpectError(overrides=overrides) if overrides is not None:
                self._body(overrides, names, plan)
            case syntax.NodeDecl():
                self._node(item, names, plan)
            case syntax.Assign(path=path, value=value):
                self._assign(path, value, names, plan, record)
            case syntax.Delete(path=path):
                self._path(path.names, plan, names)
            case syntax.SweepAxis(path=path, values=values):
                self._path(path.names, plan, names)
                if path.names[0].text not in names:
                    self.index.free.append((path.names[0].text, path.span))
                self._expr(values, names, plan)
            case syntax.Zip(axes=axes):
                for axis in axes:
                    self._item(axis, names, plan)
            case syntax.Let(value=value, type=type_):
                self._type(type_, names, plan)
                self._expr(value, names, plan)
            case syntax.Param(type=type_, default=default):
                self._type(type_, names, plan)
                if default is not None:
                    self._expr(default, names, plan)
            case syntax.Check(condition=condition, otherwise=otherwise):
                self._expr(condition, names, plan)
                if otherwise is not None:
                    self._expr(otherwise, names, plan)
            case syntax.Exclude(condition=condition) | syntax.Expect(condition=condition):
                self._expr(condition, names, plan)

    def _body(self, body: syntax.Record, names: Names, plan: str, record: type | None = None) -> None:
        inner = self._inside(body, names)
        for item in body.items:
            self._item(item, inner, plan, record)

    def _node(self, item: syntax.NodeDecl, names: Names, plan: str) -> None:
        kind = item.kind.text
        self._symbol(item.name, "entry", item, Target(item.name.text, owner=f"{kind}:{plan}"))
        for path in item.after:
            self._occurs(path.names[0].span, Target(path.names[0].text, owner=f"{kind}:{plan}"))
        type_ = structural(_FIELDS[kind].type) if kind in _FIELDS else None
        self._body(item.body, names, plan, type_.block if isinstance(type_, t.NodesOf) else None)

    def _assign(self, path: syntax.Path, value: syntax.Expr, names: Names, plan: str, record: type | None) -> None:
        first = path.names[0].text
        settings = _FIELDS if record is None else settings_of(record)
        setting = settings.get(first)
        map = _map_of(setting.type) if setting is not None and record is None and plan else None
        if map is not None:
            self._entries(first, map, path, value, names, plan)
            return
        if record is None:
            self._path(path.names, plan, names)
        named = _names_in(path.names, settings)
        if named and isinstance(value, syntax.NameRef) and value.name not in names:
            self._occurs(value.span, Target(value.name, owner=f"{named}:{plan}"))
            self.index.free.append((value.name, value.span))
        else:
            self._expr(value, names, plan)

    def _entries(
        self, field: str, map: t.MapOf, path: syntax.Path, value: syntax.Expr, names: Names, plan: str
    ) -> None:
        """A map, or one entry of it by its path: the keys are declared here, or are those of another map."""

        def entry(name: syntax.Name, item: syntax.Node) -> None:
            target = Target(name.text, owner=f"{map.keys or field}:{plan}")
            if map.keys or isinstance(item, syntax.Path):
                self._occurs(name.span, target)
            else:
                self._symbol(name, "entry", item, target)

        if len(path.names) > 1:
            is_whole = len(path.names) == 2 and not map.keys
            target = Target(path.names[1].text, owner=f"{map.keys or field}:{plan}")
            if is_whole and self.index.declared(target) is None:
                entry(path.names[1], syntax.Assign(path, value, span=path.span))
            else:
                entry(path.names[1], path)
        elif isinstance(value, syntax.Record):
            for item in value.items:
                if isinstance(item, syntax.Assign):
                    entry(item.path.names[0], item)
                    self._expr(item.value, names, plan)
            return
        self._expr(value, names, plan)

    # names ------------------------------------------------------------------------------------------------------------

    def _named(self, path: syntax.Path) -> Target:
        """What the name of a plan stands for: `base`, or `lib.base`."""
        first = path.names[0].text
        if len(path.names) > 1 and first in self.modules:
            return Target(path.names[1].text, self.modules[first])
        return self.index.names.get(first, Target(first))

    def _path_of_plan(self, path: syntax.Path) -> None:
        target = self._named(path)
        first = path.names[0]
        if len(path.names) > 1 and first.text in self.modules:
            self._occurs(first.span, self.index.names[first.text])
            self._occurs(path.names[1].span, target)
        elif first.text in self.index.names or not target.module:
            self._occurs(first.span, target)

    def _path(self, path: tuple[syntax.Name, ...], plan: str, names: Names) -> None:
        """A dotted path of the plan, or the name of a param that a sweep varies."""
        first = path[0].text
        setting = _FIELDS.get(first)
        if len(path) > 1 and setting is not None and plan:
            type_ = structural(setting.type)
            if isinstance(type_, t.MapOf | t.NodesOf):
                keys = type_.keys if isinstance(type_, t.MapOf) else ""
                self._occurs(path[1].span, Target(path[1].text, owner=f"{keys or first}:{plan}"))
        elif len(path) == 1 and setting is None and first in names:
            self._occurs(path[0].span, names[first])

    def _type(self, type_: syntax.TypeExpr | None, names: Names, plan: str) -> None:
        if type_ is not None:
            for argument in type_.arguments if type_.name.text != "OneOf" else ():  # Its arguments are words.
                self._expr(argument, names, plan)
            for parameter in type_.parameters:
                self._type(parameter, names, plan)

    # expressions ------------------------------------------------------------------------------------------------------

    def _expr(self, expr: syntax.Expr, names: Names, plan: str) -> None:
        match expr:
            case syntax.NameRef(name=name):
                if name in names:
                    self._occurs(expr.span, names[name])
                else:
                    self.index.free.append((name, expr.span))
            case syntax.Member():
                self._member(expr, names, plan)
            case syntax.Record():
                inner = self._inside(expr, names)
                for item in expr.items:
                    # Keys of a record that is no plan are fields of the schema.
                    self._expr(item.value, inner, plan) if isinstance(item, syntax.Assign) else self._item(
                        item, inner, plan
                    )
            case syntax.Comprehension(variable=variable, iterable=iterable, condition=condition, element=element):
                self._expr(iterable, names, plan)
                target = Target(variable.text, owner=f"@{variable.span.start}")
                self._symbol(variable, "variable", expr, target, expr.span)
                self._exprs([element, *([condition] if condition is not None else [])],
                            {**names, variable.text: target}, plan)  # fmt: skip
            case syntax.Text(parts=parts):
                self._exprs((part for part in parts if isinstance(part, syntax.Expr)), names, plan)
            case _:
                self._exprs((c for c in syntax.children(expr) if isinstance(c, syntax.Expr)), names, plan)

    def _exprs(self, exprs: Iterable[syntax.Expr], names: Names, plan: str) -> None:
        for expr in exprs:
            self._expr(expr, names, plan)

    def _member(self, expr: syntax.Member, names: Names, plan: str) -> None:
        """`lib.width` names a symbol of another file, `sources.web` an entry; other members are fields."""
        chain = [expr.name]
        base = expr.base
        while isinstance(base, syntax.Member):
            chain.append(base.name)
            base = base.base
        chain.reverse()
        self._expr(base, names, plan)
        if not isinstance(base, syntax.NameRef):
            return
        target = names.get(base.name)
        if target is not None and not target.owner and not target.module and base.name in self.modules:
            self._occurs(chain[0].span, Target(chain[0].text, self.modules[base.name]))
        elif target is None and base.name in _FIELDS:
            self._path((syntax.Name(base.name, span=base.span), *chain), plan, names)


def _written(source: syntax.Text) -> str:
    return "".join(part for part in source.parts if isinstance(part, str))


def _map_of(type_: t.FieldType) -> t.MapOf | None:
    found = structural(type_)
    return found if isinstance(found, t.MapOf) else None


def _names_in(path: tuple[syntax.Name, ...], settings: Mapping[str, Setting]) -> str:
    """The map whose entries the field at a path names; "" for other fields."""
    setting = settings.get(path[0].text)
    if setting is None:
        return ""
    inner = structural(setting.type)
    if len(path) == 3 and isinstance(inner, t.NodesOf):
        return _names_in(path[2:], settings_of(inner.block))
    found = (a.map for a in alternatives(setting.type) if isinstance(a, t.NameIn))
    return next(found, "") if len(path) == 1 else ""
