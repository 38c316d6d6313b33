"""Where in a plan file is a value to be written, so that one plan has it?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from attrs import frozen

from forgeplan.diagnostics.diagnostic import Edit
from forgeplan.diagnostics.source import Sources
from forgeplan.diagnostics.span import Span
from forgeplan.dsl import syntax
from forgeplan.dsl.rewriting import put_into, put_item, take_out
from forgeplan.spec.job import Job
from forgeplan.spec.provenance import Origin

_WRITTEN = ("plan ", "profile ", "cell ")


@frozen
class Writer:
    """Edits of one plan file for one of its jobs. A value that another file decides is overridden in the plan itself.

    `order` is the one in which transforms stand in `apply`. Every method gives None where no edit does what is asked.
    """

    file: syntax.File
    sources: Sources
    job: Job
    order: Sequence[str]

    def set(self, path: str, text: str) -> Edit | None:
        """Write a value in place of the one in force, or in addition where none is written."""
        origin = self._origin(path)
        if origin is not None and origin.layer == "command line":
            return None
        if origin is not None and self._is_here(origin):
            span = self._value_at(origin.span)
            return Edit(span, text) if span is not None else None
        plan = self._plan()
        return self._into(plan.body, path.split("."), text) if plan is not None else None

    def delete(self, path: str) -> Edit | None:
        """Take out the statement or item that decides a value, with all that it holds."""
        origin = self._origin(path)
        if origin is None or not self._is_here(origin):
            return None
        return self.delete_at(origin.span)

    def delete_at(self, span: Span) -> Edit | None:
        """Take out the statement, or the item of a list, whose value, name or whole stands at a place."""
        if span.file != self.file.span.file:
            return None
        found = next((one for one in _siblings(self.file) if _stands_at(one[0][one[1]], span)), None)
        return take_out(self._text, *found) if found is not None else None

    def reorder(self, path: str, names: Sequence[str]) -> Edit | None:
        """Put the items of a list in another order, each with its options; what stands between them stays."""
        origin = self._origin(path)
        lists = (node for node in _nodes(self.file) if isinstance(node, syntax.ListExpr))
        found = next((node for node in lists if origin is not None and node.span == origin.span), None)
        if found is None or sorted(map(_tag, found.items)) != sorted(names):
            return None
        spans = {_tag(item): item.span for item in found.items}
        text, places = self._text, [item.span for item in found.items]
        gaps = [text[a.end : b.start] for a, b in pairwise(places)] + [""]
        parts = [text[spans[name].start : spans[name].end] + gap for name, gap in zip(names, gaps, strict=True)]
        return Edit(places[0].to(places[-1]), "".join(parts))

    def _origin(self, path: str) -> Origin | None:
        """Who wrote the value, or the `auto` that it was computed for."""
        leaf = self.job.leaves.get(path)
        return next((o for o in leaf.origins if o.layer != "computed"), None) if leaf is not None else None

    def _value_at(self, span: Span) -> Span | None:
        """The place of the value that stands at a place, or of that of the statement whose path does."""
        for node in _nodes(self.file):
            if isinstance(node, syntax.Expr) and node.span == span:
                return span
            if isinstance(node, syntax.Assign) and node.path.span == span:
                return node.value.span
        return None

    def _is_here(self, origin: Origin) -> bool:
        return origin.span.file == self.file.span.file and origin.layer.startswith(_WRITTEN)

    @property
    def _text(self) -> str:
        source = self.sources.get(self.file.span.file)
        return source.text if source is not None else ""

    def _plan(self) -> syntax.Plan | None:
        plans = (item for item in self.file.items if isinstance(item, syntax.Plan))
        return next((plan for plan in plans if plan.name.text == self.job.plan_name), None)

    def _into(self, body: syntax.Record, names: list[str], text: str) -> Edit | None:
        """Write a field of a record: into the smallest record that has a statement for it, else as a dotted path."""
        for item in reversed(body.items):
            own, value = _named(item)
            if value is not None and own == names[: len(own)] and len(own) < len(names):
                return self._into_value(value, names[len(own) :], text)
        if names[0] == "apply" and "apply" in self.job.leaves and body.span == self._body_span():
            return self._whole_apply(body, names[1:], text)
        return put_into(self._text, body, f"{'.'.join(names)} = {text}")

    def _into_value(self, value: syntax.Expr, names: list[str], text: str) -> Edit | None:
        if isinstance(value, syntax.Record):
            return self._into(value, names, text)
        if isinstance(value, syntax.Amend):
            return self._into(value.record, names, text)
        if isinstance(value, syntax.NameRef):
            return Edit(Span(value.span.file, value.span.end, value.span.end), f" {{ {'.'.join(names)} = {text} }}")
        if isinstance(value, syntax.ListExpr) and names[0] in self.order:
            return self._into_list(value, names, text)
        return None

    def _into_list(self, items: syntax.ListExpr, names: list[str], text: str) -> Edit | None:
        """An option of a transform, which is put at its place where the list does not have it."""
        tags = [_tag(item) for item in items.items]
        if names[0] in tags:
            there = items.items[tags.index(names[0])]
            return self._into_value(there, names[1:], text) if len(names) > 1 else None
        if not set(tags) <= set(self.order):
            return None
        own = self.order.index(names[0])
        index = next((i for i, tag in enumerate(tags) if self.order.index(tag) > own), len(tags))
        return put_item(self._text, items, index, _transform(names, text))

    def _whole_apply(self, body: syntax.Record, names: list[str], text: str) -> Edit | None:
        """A list of transforms where no plan has one; one of another plan would have to be repeated."""
        if self.job.leaves["apply"].written:
            return None
        return put_into(self._text, body, f"apply = [{_transform(names, text)}]")

    def _body_span(self) -> Span | None:
        plan = self._plan()
        return plan.body.span if plan is not None else None


def _named(item: syntax.Item) -> tuple[list[str], syntax.Expr | None]:
    """The path that a statement decides, and its value."""
    if isinstance(item, syntax.Assign) and not item.append:
        return [name.text for name in item.path.names], item.value
    if isinstance(item, syntax.NodeDecl):
        return [item.kind.text, item.name.text], item.body
    return [], None


def _transform(names: Sequence[str], text: str) -> str:
    return f"{names[0]} {{ {'.'.join(names[1:])} = {text} }}" if len(names) > 1 else names[0]


def _tag(item: syntax.Expr) -> str:
    base = item.base if isinstance(item, syntax.Amend) else item
    return base.name if isinstance(base, syntax.NameRef) else ""


def _nodes(node: syntax.Node) -> Iterator[syntax.Node]:
    yield node
    for child in syntax.children(node):
        yield from _nodes(child)


def _siblings(node: syntax.Node) -> Iterator[tuple[Sequence[syntax.Node], int]]:
    """Every statement and item of a list, smaller ones first, as its place among those beside it."""
    for child in syntax.children(node):
        yield from _siblings(child)
    items = getattr(node, "items", ())
    for index, item in enumerate(items):
        if isinstance(item, syntax.Item | syntax.Expr):
            yield items, index


def _stands_at(node: syntax.Node, span: Span) -> bool:
    value = getattr(node, "value", node)
    parts = (node, value, getattr(value, "base", None), getattr(node, "name", None))
    return any(isinstance(part, syntax.Node) and part.span == span for part in parts)
