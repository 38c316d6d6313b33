"""Which statements take part in a value, and which is the strongest?

A plan, its bases, a profile, a sweep cell and the command line are layers of statements; strength grows in that order.
Statements of one layer have one strength (their `group`), in whatever order they are written.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import define, field

from forgeplan.diagnostics.span import Span
from forgeplan.dsl import syntax
from forgeplan.dsl.scope import Scope

COMMAND_LINE_LAYER = "command line"
SCHEMA_LAYER = "schema default"
COMPUTED_LAYER = "computed"


@define(eq=False)
class Group:
    """Identity is strength: contributions of one group must agree."""

    layer: str


@define(eq=False)
class Contribution:
    """One statement on its way to the value it sets. `path` is the rest of its path, below the part that has it."""

    path: tuple[syntax.Name, ...]
    operation: str
    """`set`, `node` (a declared node), `append` or `delete`."""
    expr: syntax.Expr | None
    scope: Scope
    group: Group
    span: Span
    """Of the path as written."""
    body: object
    """The body it stands in; two of one body with one path are a repetition."""
    size: int
    """Names in the path as written."""

    @property
    def layer(self) -> str:
        return self.group.layer

    def below(self) -> Contribution:
        """The same, as the part one name deeper sees it."""
        return Contribution(
            self.path[1:], self.operation, self.expr, self.scope, self.group, self.span, self.body, self.size
        )


@define(eq=False)
class Piece:
    """A body that takes part in a record: its statements, read in `scope`, at the strength of `group`."""

    items: tuple[syntax.Item, ...]
    scope: Scope
    group: Group | None
    """None: the strength of the statement that brought the body."""
    is_bound: bool = False
    """Whether `scope` is already the body's own, with its `let`s."""

    @property
    def damaged(self) -> bool:
        """Whether a statement could not be read: what seems missing may be it."""
        return any(isinstance(item, syntax.ErrorItem) for item in self.items)


@define(eq=False)
class Collapsed:
    """The contributions to one part, sorted out: what is in force, what reaches in, what was replaced."""

    whole: Contribution | None = None
    rivals: list[Contribution] = field(factory=list)
    """Others for the whole, of the same strength as `whole`."""
    appends: list[Contribution] = field(factory=list)
    deeper: list[Contribution] = field(factory=list)
    replaced: list[Contribution] = field(factory=list)
    deleted: Contribution | None = None
    idle: list[Contribution] = field(factory=list)
    """Deletions that found nothing."""

    @property
    def written(self) -> bool:
        return self.whole is not None or bool(self.appends) or bool(self.deeper)


def collapse(contributions: Iterable[Contribution]) -> Collapsed:
    """Sort out contributions that come weakest first."""
    found = Collapsed()
    for c in contributions:
        if c.path:
            found.deeper.append(c)
        elif c.operation == "append":
            found.appends.append(c)
        elif c.operation == "delete":
            _delete(found, c)
        elif found.whole is not None and found.whole.group is c.group:
            found.rivals.append(c)
        else:
            _replace(found)
            found.whole, found.deleted = c, None
    return found


def _delete(found: Collapsed, deletion: Contribution) -> None:
    if not found.written:
        found.idle.append(deletion)
    _replace(found)
    found.whole, found.deleted = None, deletion


def _replace(found: Collapsed) -> None:
    """A whole value replaces everything weaker."""
    if found.whole is not None:
        found.replaced.append(found.whole)
    found.replaced += found.rivals + found.appends + found.deeper
    found.rivals, found.appends, found.deeper = [], [], []


def contributions_of(items: Iterable[syntax.Item], scope: Scope, group: Group, body: object) -> list[Contribution]:
    """The statements of a body that set something, deletions first, whole values before what reaches into them."""
    deletes: list[Contribution] = []
    sets: list[Contribution] = []
    appends: list[Contribution] = []
    for item in items:
        match item:
            case syntax.Assign(path=path, value=value, append=append):
                names = path.names
                made = Contribution(
                    names, "append" if append else "set", value, scope, group, path.span, body, len(names)
                )
                (appends if append else sets).append(made)
            case syntax.NodeDecl(kind=kind, name=name):
                made = Contribution((kind, name), "node", item.body, scope, group, name.span, body, 2)
                sets.append(made)
            case syntax.Delete(path=path):
                names = path.names
                deletes.append(Contribution(names, "delete", None, scope, group, path.span, body, len(names)))
    if any(c.size > 1 for c in sets):
        sets.sort(key=lambda c: c.size)
    return deletes + sets + appends
