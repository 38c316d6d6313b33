"""What would a check have written in the plan, and which fix does that?

Checks name paths and values; whoever knows the text says where they stand.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

from attrs import frozen

from forgeplan.diagnostics.diagnostic import Edit, Fix, Safety
from forgeplan.diagnostics.span import Span


class Writes(Protocol):
    """Where a text has, or gets, what a path names. None where no edit does it."""

    def set(self, path: str, text: str) -> Edit | None: ...

    def delete(self, path: str) -> Edit | None: ...

    def delete_at(self, span: Span) -> Edit | None: ...

    def reorder(self, path: str, names: Sequence[str]) -> Edit | None: ...


@frozen
class Change:
    """A value at a path, as the plan language writes it; an empty one adds a transform without options to `apply`.

    None takes out what decides the path, or stands at `at`; `order` puts the items of a list in another order.
    """

    path: str
    text: str | None
    safety: Safety = Safety.ASK
    at: Span | None = None
    order: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        if self.order:
            return f"put {self.path} in order"
        if self.text is None:
            return f"delete {self.path}"
        return f"set {self.path} to {self.text}" if self.text else "add {1} to {0}".format(*self.path.split("."))

    def edit(self, writes: Writes) -> Edit | None:
        if self.order:
            return writes.reorder(self.path, self.order)
        if self.text is not None:
            return writes.set(self.path, self.text)
        return writes.delete_at(self.at) if self.at is not None else writes.delete(self.path)


def fixes_of(changes: Iterable[Change], writes: Writes, known: Sequence[Fix] = ()) -> Iterator[Fix]:
    """A fix for each change that can be written, and that none of the known fixes does."""
    done = {fix.edits for fix in known}
    for change in changes:
        edit = change.edit(writes)
        if edit is not None and (edit,) not in done:
            done.add((edit,))
            yield Fix(change.title, (edit,), change.safety)
