"""Which fields does the component or function take that is being written?"""

from __future__ import annotations

from lsprotocol import types as lsp

from forgeplan.dsl.functions import FUNCTIONS
from forgeplan.lsp import docs
from forgeplan.lsp.places import context_of
from forgeplan.lsp.snapshot import Snapshot
from forgeplan.lsp.workspace import Workspace
from forgeplan.spec.setting import Setting, settings_of

_ARGUMENTS = {"min": "numbers, or one list", "max": "numbers, or one list", "sum": "one list", "len": "list or text"}


def signature_help(snapshot: Snapshot, at: int, workspace: Workspace) -> lsp.SignatureHelp | None:
    """Fields of the record around an offset, with the one that is being written; or what a function takes."""
    name = _function(snapshot.text, at)
    if name is not None:
        label = f"{name}({_ARGUMENTS.get(name, 'number')})"
        return lsp.SignatureHelp([lsp.SignatureInformation(label)], 0)
    context = context_of(snapshot, at, workspace)
    block = context.place.block
    if block is None or context.place.kind not in ("record", "node"):
        return None
    settings = list(settings_of(block).values())
    names = [f"{setting.name}: {setting.type.describe()}" for setting in settings]
    title = context.tags[0] if context.tags else context.place.path
    return lsp.SignatureHelp(
        [
            lsp.SignatureInformation(
                f"{title} {{ {', '.join(names)} }}",
                documentation=docs.summary(block) or None,
                parameters=[_parameter(text, setting) for text, setting in zip(names, settings, strict=True)],
            )
        ],
        0,
        _active(context.keys[:1] or (snapshot.text[context.word.start : context.word.end],), settings),
    )


def _parameter(label: str, setting: Setting) -> lsp.ParameterInformation:
    return lsp.ParameterInformation(label, f"{setting.doc}; default {docs.default_of(setting)}")


def _active(keys: tuple[str, ...], settings: list[Setting]) -> int | None:
    return next((number for number, setting in enumerate(settings) if setting.name in keys), None)


def _function(text: str, at: int) -> str | None:
    """The function whose arguments an offset is between."""
    depth = 0
    for place in range(at - 1, max(-1, at - 400), -1):
        character = text[place]
        if character in ")]}":
            depth += 1
        elif character in "([{":
            depth -= 1
            if depth < 0:
                word = text[:place].rpartition("\n")[2].split()[-1:] or [""]
                name = "".join(c if c.isalnum() else " " for c in word[0]).split()[-1:] or [""]
                return name[0] if character == "(" and name[0] in FUNCTIONS else None
        elif character == "\n" and depth == 0:
            return None
    return None
