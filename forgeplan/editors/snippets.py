"""Which snippets does an editor offer? Statements as they are written often, and every component with its fields.

In the notation of VS Code: `${1:text}` is a place with a suggestion, `${1|a,b|}` one with a choice, `$0` the last one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from forgeplan.spec import types as t
from forgeplan.spec.registry import components
from forgeplan.spec.setting import Setting, settings_of

STATEMENTS = {
    "forge": (
        "a whole plan file",
        """\
forge 1

from "std:clusters" import ${1:h200_node}
from "std:models" import ${2:llama3_8b}

## ${3:What this run is for.}
plan ${4:name} {
  cluster = $1 { devices_per_node = ${5:8} }
  model   = $2 { context = ${6:4Ki} tokens }
  sources = { ${7:web} = tokens { path = "${8:shards/*.npy}" } }
  batch     = { accumulation = ${9:4}, micro = ${10:1 sequence}, length = $6 tokens }
  optimizer = adamw { lr = ${11:3e-4} }
  schedule  = cosine { warmup = ${12:1%}, floor = 10% }
  budget    = { tokens = ${13:100B tokens} }

  eval held_out { source = $7, split = 1%, every = 1% }
  checkpoint = { every = ${14:30min} }
}
$0""",
    ),
    "import": ("names for another file", 'import "${1:std:models}" as ${2:models}$0'),
    "from": ("names of another file", 'from "${1:std:models}" import ${2:llama3_8b}$0'),
    "let": ("a value with a name", "let ${1:length} = ${2:4Ki tokens}$0"),
    "param": (
        "a value that the command line may change",
        "## ${1:What it is.}\nparam ${2:warm_up}: ${3|Share,Int,Number,Rate,Tokens,Sequences,Steps,Bytes,Duration,Text,"
        "Path,Bool|}(${4:0% .. 10%}) = ${5:3%}$0",
    ),
    "plan extends": (
        "a plan that says what differs from another",
        "## ${1:What differs.}\nplan ${2:longer} extends ${3:base} {\n  ${4:budget.tokens} = ${5:200B tokens}$0\n}",
    ),
    "partial plan": (
        "what several plans have in common",
        "partial plan ${1:common} {\n  ${2:seed} = ${3:17}$0\n}",
    ),
    "sweep": (
        "a plan for each combination of values",
        "sweep ${1:scan} over ${2:base} {\n  axis ${3:optimizer.lr} in [${4:1e-4, 3e-4}]\n  limit = ${5:12 runs}$0\n}",
    ),
    "zip": (
        "axes that change together",
        "zip {\n  axis ${1:seed} in [${2:1, 2}]\n  axis ${3:optimizer.lr} in [${4:1e-4, 2e-4}]$0\n}",
    ),
    "test": (
        "what has to be true of a plan",
        'test "${1:what must hold}" for ${2:base} {\n  expect ${3:model.heads % mesh.tp == 0}$0\n}',
    ),
    "expect error": (
        "a change that has to be refused",
        "expect error ${1:FP0401} with { ${2:mesh.dp_shard = 3} }$0",
    ),
    "profile": (
        "a variant of the plan, chosen by --profile",
        "## ${1:Twenty steps of the same code.}\nprofile ${2:smoke} {\n  budget = { steps = ${3:20 steps} }$0\n}",
    ),
    "eval": (
        "an evaluation while training",
        "eval ${1:held_out} { source = ${2:web}, split = ${3:1%}, every = ${4:500 steps} }$0",
    ),
    "checkpoint": ("when state is saved", "checkpoint = { every = ${1:30min}, keep = ${2:3} }$0"),
    "budget": ("when the run ends", "budget = { ${1|tokens = 100B tokens,steps = 1000 steps|} }$0"),
    "mesh": ("degrees of the parallel axes", "mesh = { ${1|tp,cp,pp,ep,dp_replicate,dp_shard|} = ${2:2} }$0"),
    "batch": (
        "the batch",
        "batch = { global = ${1:2Mi tokens}, micro = ${2:1 sequence}, length = ${3:4Ki tokens} }$0",
    ),
    "apply": ("transforms with their options", "apply = [${1:recompute { mode = selective \\}}, ${2:compile}]$0"),
    "sources": (
        "where data comes from",
        'sources = {\n  ${1:web}  = tokens { path = "${2:web/*.npy}" }\n'
        '  ${3:code} = tokens { path = "${4:code/*.npy}" }\n}\nmixture = { $1 = ${5:80%}, $3 = ${6:20%} }$0',
    ),
    "delete": ("a setting of the base that goes", "delete ${1:eval.held_out}$0"),
    "assert": ("what the plan is held to", 'assert ${1:checkpoint.every <= 1h} else "${2:the reason}"$0'),
    "warn": (
        "what the plan should be held to",
        'warn ${1:mesh.tp <= cluster.devices_per_node} else "${2:the reason}"$0',
    ),
    "allow": ("silence a lint for the statement below", "# forge: allow ${1:unusual-rate}\n$0"),
}
"""Prefix → what it is, and its body."""

KINDS = ("operation", "schedule", "optimizer", "source", "tokenizer")
"""Kinds of components that have a snippet each."""


def snippets() -> dict[str, dict[str, str | list[str]]]:
    """All of them, by title."""
    found = {f"{prefix}: {doc}": _snippet(prefix, body, doc) for prefix, (doc, body) in STATEMENTS.items()}
    for kind in KINDS:
        for tag, block in components(kind).items():
            title = f"{tag}: {'transform' if kind == 'operation' else kind}"
            found[title] = _snippet(tag, component_body(tag, block), _first_sentence(block))
    return found


def text() -> str:
    """The file `grammar/vscode/snippets/forge.json`."""
    return json.dumps(snippets(), indent=2, ensure_ascii=False) + "\n"


def component_body(tag: str, block: type) -> str:
    """`cosine { warmup = ${1:1%} }$0`: fields that must be written, parts of a schedule, and choices of words."""
    places = (_place(setting, i) for i, setting in enumerate(_asked(block), start=1))
    fields = ", ".join(places)
    return f"{tag} {{ {fields} }}$0" if fields else f"{tag}$0"


def _asked(block: type) -> Iterator[Setting]:
    for setting in settings_of(block).values():
        is_choice = isinstance(setting.type, t.OneOf) and setting.default in setting.type.members
        if setting.required or setting.type is t.SPAN_OF_SCHEDULE or is_choice:
            yield setting


def _place(setting: Setting, number: int) -> str:
    if isinstance(setting.type, t.OneOf):
        first = setting.default if isinstance(setting.default, str) else setting.type.members[0]
        words = [first, *(word for word in setting.type.members if word != first)]
        return f"{setting.name} = ${{{number}|{','.join(words)}|}}"
    suggested = setting.default if isinstance(setting.default, str) else setting.example
    example = re.sub(r"([\\$}])", r"\\\1", suggested)
    return f"{setting.name} = ${{{number}:{example}}}"


def _snippet(prefix: str, body: str, description: str) -> dict[str, str | list[str]]:
    return {"prefix": prefix, "body": body.split("\n"), "description": description}


def _first_sentence(block: type) -> str:
    return re.split(r"(?<=\.)\s|\n\n", (block.__doc__ or "").strip(), maxsplit=1)[0].replace("\n    ", " ")
