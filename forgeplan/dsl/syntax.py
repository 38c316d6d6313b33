"""What does a parsed plan file look like? Every node carries the span it was read from.

`ErrorExpr` and `ErrorItem` stand where text could not be read: they are already reported, and whoever evaluates one
stays silent (one cause, one message).
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from attrs import field, frozen

from forgeplan.diagnostics.span import Span


@frozen
class Node:
    span: Span = field(eq=False, kw_only=True)


@frozen
class Name(Node):
    text: str


@frozen
class Path(Node):
    """`mesh.tp`, `eval.held_out`: one or more names."""

    names: tuple[Name, ...]

    @property
    def text(self) -> str:
        return ".".join(n.text for n in self.names)


# Expressions ---------------------------------------------------------------------------------------------------------


@frozen
class Expr(Node):
    pass


@frozen
class ErrorExpr(Expr):
    pass


@frozen
class Number(Expr):
    """A number with what stands at it: `4Ki tokens` is amount 4096, spelling "4Ki", unit "tokens"; `85%` has unit "%".

    A unit glued to the digits that is no multiplier (`8GiB`, `30min`, `989TFLOP/s`) is in `unit` as written.
    `unit` may be unknown to the language; the evaluator says so.
    """

    amount: int | Fraction
    spelling: str
    unit: str | None = None
    unit_span: Span | None = field(default=None, eq=False)


@frozen
class Text(Expr):
    """`"runs/${plan.name}"`: literal pieces (escapes resolved) and embedded expressions, in order."""

    parts: tuple[str | Expr, ...]


@frozen
class Constant(Expr):
    """`true`, `false`, `none`."""

    value: bool | None


@frozen
class NameRef(Expr):
    """A bare word: a let, a param, an import, a plan field's first part, a member or a component. `self` too."""

    name: str


@frozen
class Member(Expr):
    """`base.name`."""

    base: Expr
    name: Name


@frozen
class Index(Expr):
    base: Expr
    index: Expr


@frozen
class Call(Expr):
    function: Expr
    arguments: tuple[Expr, ...]


@frozen
class Unary(Expr):
    """`not`, `-` or `+`."""

    operator: str
    operand: Expr


@frozen
class Binary(Expr):
    """`+ - * / // % ** and or in ..`, with `operator_span` at the sign."""

    operator: str
    left: Expr
    right: Expr
    operator_span: Span = field(eq=False)


@frozen
class Comparison(Expr):
    """Chained: `a < b <= c` has operands (a, b, c) and operators ("<", "<=")."""

    operands: tuple[Expr, ...]
    operators: tuple[str, ...]


@frozen
class Conditional(Expr):
    condition: Expr
    then: Expr
    otherwise: Expr


@frozen
class ListExpr(Expr):
    items: tuple[Expr, ...]


@frozen
class Comprehension(Expr):
    """`[for x in xs if c: e]`."""

    variable: Name
    iterable: Expr
    condition: Expr | None
    element: Expr


@frozen
class Record(Expr):
    """`{ … }`; items as in any body."""

    items: tuple[Item, ...]


@frozen
class Amend(Expr):
    """`base { … }`: a component with its fields, or an amended value; which of the two is for the evaluator to say."""

    base: Expr
    record: Record


# Statements ----------------------------------------------------------------------------------------------------------


@frozen
class Item(Node):
    """A statement. `doc` is the text of the `##` lines above it, `allows` the names after `# forge: allow`."""

    doc: str = field(default="", kw_only=True)
    allows: tuple[Name, ...] = field(default=(), kw_only=True)


@frozen
class ErrorItem(Item):
    pass


@frozen
class Import(Item):
    """`import "file" as name`."""

    source: Text
    name: Name


@frozen
class FromImport(Item):
    """`from "file" import a, b`."""

    source: Text
    names: tuple[Name, ...]


@frozen
class TypeExpr(Node):
    """`Rate(1e-6 .. 1e-2)`, `OneOf(a, b)`, `List[Int]`, `Tokens?`."""

    name: Name
    parameters: tuple[TypeExpr, ...] = ()
    arguments: tuple[Expr, ...] = ()
    optional: bool = False


@frozen
class Param(Item):
    name: Name
    type: TypeExpr
    default: Expr | None


@frozen
class Let(Item):
    name: Name
    type: TypeExpr | None
    value: Expr


@frozen
class Assign(Item):
    """`path = value`, or `path += value` where `append`."""

    path: Path
    value: Expr
    append: bool = False


@frozen
class Delete(Item):
    path: Path


@frozen
class NodeDecl(Item):
    """`eval held_out after x { … }`: `kind`, `name`, the paths after `after`, and the body."""

    kind: Name
    name: Name
    after: tuple[Path, ...]
    body: Record


@frozen
class Check(Item):
    """`assert expr else "…"`, or `warn` where `is_warning`."""

    condition: Expr
    otherwise: Text | None
    is_warning: bool


@frozen
class Profile(Item):
    name: Name
    body: Record


@frozen
class Plan(Item):
    name: Name
    base: Path | None
    partial: bool
    body: Record


@frozen
class SweepAxis(Item):
    path: Path
    values: Expr


@frozen
class Zip(Item):
    axes: tuple[SweepAxis, ...]


@frozen
class Exclude(Item):
    condition: Expr


@frozen
class Sweep(Item):
    """Items are SweepAxis, Zip, Exclude, Let and Assign (`limit = 12 runs`, and fixed overrides)."""

    name: Name
    base: Path
    items: tuple[Item, ...]


@frozen
class Expect(Item):
    condition: Expr


@frozen
class ExpectError(Item):
    """`expect error FP0412 with { mesh.tp = 3 }`; without `with`, the plan as it stands."""

    code: Name
    overrides: Record | None


@frozen
class Test(Item):
    title: Text
    base: Path
    items: tuple[Item, ...]


@frozen
class File(Node):
    """A whole file. `edition` is None where the first statement is missing or unreadable (already reported).

    `allows` are the names after `# forge: allow` above the edition: they are about all of the file.
    """

    edition: int | None
    items: tuple[Item, ...]
    allows: tuple[Name, ...] = ()


def children(node: Node) -> Iterator[Node]:
    """The nodes directly inside of one, in the order of its attributes."""
    for attribute in node.__attrs_attrs__:
        value = getattr(node, attribute.name)
        if isinstance(value, Node):
            yield value
        elif isinstance(value, tuple):
            yield from (part for part in value if isinstance(part, Node))
