"""What can be written next on a command line? Plan files, and what the one that is named there holds.

Each function is a `shell_complete` of click: it takes the context, with the arguments that came before, and the text so
far. It never fails: where a file cannot be read, nothing is offered.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from forgeplan.diagnostics.refusal import UsageError

if TYPE_CHECKING:
    from forgeplan.dsl.load import Loaded

_PLAN, _COMPILED = ".forge", ".plan.json"
Items = list[CompletionItem[str]]


def plan_files(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Plan files, and folders to go on from."""
    return list(_files(incomplete, (_PLAN,)))


def plans_and_compiled(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Plan files and what `compile` makes of them."""
    return list(_files(incomplete, (_PLAN, _COMPILED)))


def files_and_codes(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Plans, compiled ones, and codes of diagnostics; all codes only where one is begun, as they are many."""
    from forgeplan.diagnostics.pages import all_codes

    codes = [code for code in all_codes() if incomplete and code.startswith(incomplete)]
    return [*_files(incomplete, (_PLAN, _COMPILED)), *map(_item, codes)]


def paths(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Fields of the plan by their path, one name further at a time."""
    return _further(_leaves(ctx), incomplete, "")


def plan_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Plans of the file."""
    loaded = _loaded(ctx)
    return _beginning(loaded.plans if loaded else (), incomplete)


def profile_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Profiles of the plan that was chosen, or of all."""
    loaded = _loaded(ctx)
    if loaded is None:
        return []
    return _beginning(
        dict.fromkeys(name for plan in _chosen(ctx, loaded) for name in loaded.profiles(plan)), incomplete
    )


def settings(ctx: click.Context, param: click.Parameter, incomplete: str) -> Items:
    """Params and fields with `=`, then the words that a field takes."""
    path, equals, begun = incomplete.partition("=")
    if equals:
        return [_item(f"{path}={word}") for word in _words_at(path, _leaves(ctx)) if word.startswith(begun)]
    return [*_params(ctx, incomplete), *_further(_leaves(ctx), incomplete, "=")]


def _item(value: str, help: str = "") -> CompletionItem[str]:
    return CompletionItem(value, help=" ".join(help.split()))


def _beginning(names: Iterable[str], incomplete: str) -> Items:
    return [_item(name) for name in names if name.startswith(incomplete)]


def _files(incomplete: str, suffixes: tuple[str, ...]) -> Iterator[CompletionItem[str]]:
    folder, name = os.path.split(incomplete)
    try:
        found = sorted(os.scandir(os.path.expanduser(folder) or "."), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in found:
        if not entry.name.startswith(name) or (entry.name.startswith(".") and not name.startswith(".")):
            continue
        written = os.path.join(folder, entry.name)
        if entry.is_dir():
            yield _item(f"{written}/")
        elif entry.name.endswith(suffixes):
            yield _item(written)


def _loaded(ctx: click.Context) -> Loaded | None:
    """The plan file that the command line names, resolved.

    Click leaves arguments in `args` where an option still waits for its value, as is usual here.
    """
    named = [*ctx.args, *(value for value in ctx.params.values() if isinstance(value, str))]
    file = next((os.path.expanduser(word) for word in named if word.endswith(_PLAN)), "")
    if not Path(file).is_file():
        return None
    from forgeplan.compiler import derived_values
    from forgeplan.dsl.load import load

    try:
        return load(file, derived=derived_values())
    except UsageError:
        return None


def _chosen(ctx: click.Context, loaded: Loaded) -> list[str]:
    return [name for name in loaded.plans if ctx.params.get("plan") in (None, name)]


def _leaves(ctx: click.Context) -> Mapping[str, Any]:
    """Every field of the plans that may be meant, by its path."""
    loaded = _loaded(ctx)
    found: dict[str, Any] = {}
    for plan in _chosen(ctx, loaded) if loaded else ():
        found |= loaded.job(plan).leaves  # type: ignore[union-attr]
    return found


def _further(leaves: Mapping[str, Any], incomplete: str, end: str) -> Items:
    """Paths that begin with a text, up to the next dot; `end` closes a whole one. A component is reached into."""
    from forgeplan.compiler.schema import setting_at

    found: dict[str, str] = {}
    for path in leaves:
        if path.startswith(incomplete):
            name, dot, _ = path[len(incomplete) :].partition(".")
            setting = setting_at(path, leaves) if not dot else None
            found[incomplete + name + (dot or end)] = setting.doc if setting else ""
    groups = {path for path in found if path.endswith(".")}
    return [_item(path, doc) for path, doc in found.items() if path.removesuffix(end) + "." not in groups or not end]


def _params(ctx: click.Context, incomplete: str) -> Items:
    from forgeplan.dsl.scope import ParamBinding

    loaded = _loaded(ctx)
    bindings = loaded.module.scope.names if loaded else {}
    return [
        _item(f"{name}=", binding.param.doc)
        for name, binding in bindings.items()
        if isinstance(binding, ParamBinding) and name.startswith(incomplete)
    ]


def _words_at(path: str, leaves: Mapping[str, Any]) -> list[str]:
    """The bare words that a field takes."""
    from forgeplan.compiler.schema import setting_at
    from forgeplan.dsl.vocabulary import alternatives, members, optional
    from forgeplan.spec.types import Bool

    setting = setting_at(path, leaves) if path in leaves else None
    if setting is None:
        return []
    truth = ["true", "false"] if any(isinstance(a, Bool) for a in alternatives(setting.type)) else []
    return [*members(setting.type), *truth, *(["none"] if optional(setting.type) else [])]
