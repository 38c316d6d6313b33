"""What does a bare name mean where it stands? First the `let`s around it, then the file's own names."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from attrs import Factory, define

from forgeplan.diagnostics.span import Span
from forgeplan.dsl import syntax

if TYPE_CHECKING:
    from forgeplan.dsl.values import RecordLike, Value


_WORD = re.compile(r"\w+")
_DECLARING = frozenset(("import", "from", "let", "param"))


@define(eq=False)
class Binding:
    """A name with the place that declares it."""

    name: str
    span: Span


@define(eq=False)
class LetBinding(Binding):
    expr: syntax.Expr
    scope: Scope
    type: syntax.TypeExpr | None


@define(eq=False)
class ParamBinding(Binding):
    param: syntax.Param
    scope: Scope


@define(eq=False)
class ModuleBinding(Binding):
    """`import "file" as name`."""

    scope: Scope


@define(eq=False)
class ValueBinding(Binding):
    """The variable of a comprehension."""

    value: Value


@define(eq=False)
class BrokenBinding(Binding):
    """A name whose declaration is faulty, which is already reported."""


@define(eq=False)
class Scope:
    """Names of one body, and the record that `self` means in it. `folder` is that of the file, for paths."""

    parent: Scope | None = None
    owner: RecordLike | None = None
    folder: str = ""
    names: dict[str, Binding] = Factory(dict)
    unread: tuple[str, ...] = ()
    """Of a file: the statements that could not be read, which may declare names."""

    def inside(self, owner: RecordLike | None = None) -> Scope:
        return Scope(self, owner, self.folder)

    def find(self, name: str) -> Binding | None:
        scope: Scope | None = self
        while scope is not None:
            found = scope.names.get(name)
            if found is not None:
                return found
            scope = scope.parent
        return None

    def may_declare(self, name: str) -> bool:
        """Whether a statement of the file that could not be read may declare the name.

        It does where the name stands in it, or where it reads like a declaration and its names may be lost.
        """
        scope = self
        while scope.parent is not None:
            scope = scope.parent
        words = {word for text in scope.unread for word in _WORD.findall(text)}
        return name in words or not words.isdisjoint(_DECLARING)

    def self_record(self) -> RecordLike | None:
        scope: Scope | None = self
        while scope is not None:
            if scope.owner is not None:
                return scope.owner
            scope = scope.parent
        return None

    def is_file(self) -> bool:
        return self.parent is None

    def all_names(self) -> list[str]:
        """Every name in reach, innermost first."""
        found: dict[str, None] = {}
        scope: Scope | None = self
        while scope is not None:
            found.update(dict.fromkeys(scope.names))
            scope = scope.parent
        return list(found)
