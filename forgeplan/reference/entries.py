"""What is to be said of every block, component and field, in which order, whatever the page looks like?"""

from __future__ import annotations

from collections.abc import Iterator
from inspect import cleandoc

from attrs import frozen

from forgeplan.reference.wording import Link, field_type, range_text
from forgeplan.spec import types as t
from forgeplan.spec.plan import Plan
from forgeplan.spec.registry import components
from forgeplan.spec.setting import DERIVED, Setting, settings_of


@frozen
class Entry:
    """One field. `type` is text with links to the sections of what it names."""

    name: str
    type: tuple[str | Link, ...]
    range: str
    default: str
    """An expression of the language; "" where there is none, and `without_default` says why."""
    without_default: str
    change: str
    doc: str
    example: str
    aliases: tuple[str, ...]


@frozen
class Section:
    """One block or component. `usage` is how it is written; an empty one has no fields."""

    title: str
    anchor: str
    usage: str
    doc: tuple[str, ...]
    """Paragraphs."""
    entries: tuple[Entry, ...]
    block: type


@frozen
class Group:
    """Sections that belong together: the plan and its records, or the components of a kind."""

    title: str
    anchor: str
    doc: str
    sections: tuple[Section, ...]


KINDS = {
    "model": "What is trained.",
    "tokenizer": "How text becomes ids.",
    "source": "Where data comes from; each under a name in `sources`.",
    "optimizer": "How gradients become an update.",
    "schedule": "The learning rate over time, as a factor of its peak.",
    "loss": "What is minimised.",
    "operation": "Transforms of the program, listed in `apply`. A degree above 1 in `mesh` brings its own.",
}
"""The kinds that come first, with what they are for; further kinds follow by name."""


def groups() -> tuple[Group, ...]:
    """The whole language of plans: the plan, its records in order, then components by kind."""
    records = [_section(Plan, "plan", "plan NAME { … }"), *_records(Plan)]
    found = [Group("The plan", "the-plan", "A plan and the records in it.", tuple(records))]
    for kind in _kinds():
        sections = []
        for name, block in components(kind).items():
            sections += [_section(block, name, f"{name} {{ … }}", kind), *_records(block, name)]
        title = Link.kind(kind).text
        found.append(Group(f"Kind: {title}", Link.kind(kind).anchor, KINDS.get(kind, ""), tuple(sections)))
    return tuple(found)


def _kinds() -> list[str]:
    """Every kind that a field can take, those above first."""
    from forgeplan.spec.registry import kinds

    return [*KINDS, *(kind for kind in kinds() if kind not in KINDS)]


def _records(block: type, above: str = "") -> Iterator[Section]:
    """The records that are fields of a block, at any depth, and those of its nodes."""
    for name, setting in settings_of(block).items():
        for inner in _alternatives(setting.type):
            if isinstance(inner, t.Block | t.NodesOf):
                path = f"{above}.{name}".lstrip(".")
                usage = f"{name} NAME {{ … }}" if isinstance(inner, t.NodesOf) else f"{name} = {{ … }}"
                yield _section(inner.block, path, f"{above} {{ {usage} }}" if above else usage)
                yield from _records(inner.block, path)


def _alternatives(type_: t.FieldType) -> tuple[t.FieldType, ...]:
    return type_.alternatives if isinstance(type_, t.AnyOf) else (type_,)


def _section(block: type, title: str, usage: str, kind: str = "") -> Section:
    paragraphs = tuple(" ".join(part.split()) for part in cleandoc(block.__doc__ or "").split("\n\n"))
    settings = settings_of(block)
    entries = tuple(_entry(setting, settings) for setting in settings.values())
    anchor = Link.component(kind, title).anchor if kind else Link.record(block).anchor
    return Section(title, anchor, usage if entries else title, paragraphs, entries, block)


def _entry(setting: Setting, others: dict[str, Setting]) -> Entry:
    default, without = (
        ("", _without(setting, others)) if not isinstance(setting.default, str) else (setting.default, "")
    )
    return Entry(
        setting.name,
        field_type(setting.type),
        range_text(setting.within, setting.type) if setting.within else "",
        default,
        without,
        setting.change.value,
        setting.doc,
        setting.example,
        setting.aliases,
    )


def _without(setting: Setting, others: dict[str, Setting]) -> str:
    if setting.required_group:
        group = [name for name, other in others.items() if other.required_group == setting.required_group]
        return f"one of {' and '.join(group)} is written, the other computed"
    return "computed" if setting.default is DERIVED else "required"
