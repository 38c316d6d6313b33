"""What does the schema say about the field at a path of a job?"""

from __future__ import annotations

from collections.abc import Mapping

from forgeplan.spec import types as t
from forgeplan.spec.plan import Plan
from forgeplan.spec.provenance import Leaf
from forgeplan.spec.registry import components
from forgeplan.spec.setting import Setting, settings_of


def setting_at(path: str, leaves: Mapping[str, Leaf]) -> Setting | None:
    """The setting of a path such as `apply.recompute.mode`; None for the entries of maps and unknown paths.

    `leaves` says which component stands at a path, as its fields depend on that.
    """
    block: type | None = Plan
    setting: Setting | None = None
    names = path.split(".")
    i = 0
    while i < len(names):
        if block is None:
            return None
        setting = settings_of(block).get(names[i])
        if setting is None:
            return None
        at = ".".join(names[: i + 1])
        type_ = _container(setting.type)
        if isinstance(type_, t.MapOf | t.NodesOf | t.ListOf) and i + 1 < len(names):
            i += 1
            at = f"{at}.{names[i]}"
            block = _block_of(type_.block if isinstance(type_, t.NodesOf) else _item(type_), at, names[i], leaves)
            if i + 1 == len(names):
                return None
        else:
            block = _block_of(type_, at, names[i], leaves)
        i += 1
    return setting


def _item(type_: t.MapOf | t.ListOf) -> t.FieldType:
    return type_.value if isinstance(type_, t.MapOf) else type_.item


def _container(type_: t.FieldType) -> t.FieldType:
    """The alternative that has fields or entries below it, or the type itself."""
    if isinstance(type_, t.AnyOf):
        inner = (t.Block, t.Component, t.MapOf, t.NodesOf, t.ListOf)
        return next((a for a in type_.alternatives if isinstance(a, inner)), type_)
    return type_


def _block_of(type_: t.FieldType | type, path: str, name: str, leaves: Mapping[str, Leaf]) -> type | None:
    if isinstance(type_, type):
        return type_
    type_ = _container(type_)
    if isinstance(type_, t.Block):
        return type_.block
    if isinstance(type_, t.Component):
        leaf = leaves.get(path)
        return components(type_.kind).get(str(leaf.value) if leaf else name)
    return None
