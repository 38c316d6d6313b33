"""What is said of a field, a component or a name, in Markdown? All of it from the schema and the text."""

from __future__ import annotations

from forgeplan.spec.registry import components
from forgeplan.spec.setting import DERIVED, REQUIRED, Setting, settings_of


def of_setting(path: str, setting: Setting) -> str:
    """Doc, type, range, default and what a change means for a run that has checkpoints."""
    lines = [f"**{path}** · {setting.type.describe()}", "", f"{setting.doc[:1].upper()}{setting.doc[1:]}.", ""]
    if setting.within is not None:
        lines.append(f"- range: {setting.within.describe()}")
    lines.append(f"- default: {default_of(setting)}")
    if setting.required_group:
        lines.append(f"- exactly one of `{setting.required_group}` is written")
    lines.append(f"- changing it: {setting.change.value}")
    return "\n".join(lines)


def default_of(setting: Setting) -> str:
    if setting.default is REQUIRED:
        return "none, it is required"
    return "computed" if setting.default is DERIVED else f"`{setting.default}`"


def of_component(kind: str, name: str) -> str:
    """What a component is, with its fields."""
    block = components(kind)[name]
    fields = "\n".join(f"- `{field.name}`: {field.doc}" for field in settings_of(block).values())
    return f"**{name}** · {kind.replace('_', ' ')}\n\n{summary(block)}\n\n{fields}".rstrip()


def summary(block: type) -> str:
    """The first paragraph of a block's docstring, on one line."""
    return " ".join((block.__doc__ or "").strip().split("\n\n")[0].split())
