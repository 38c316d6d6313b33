"""How is a plan written down from its values, before the formatter has it?"""

from __future__ import annotations

import re
from collections.abc import Iterable

import attrs
from attrs import Factory, define

from forgeplan.spec.model.decoder import Decoder
from forgeplan.spec.optimizer.adamw import AdamW
from forgeplan.spec.plan import Batch, Checkpoint, Mesh, Metrics, Plan, Precision

_ORDER = {name: at for at, name in enumerate(attrs.fields_dict(Plan))}
_FIELDS = {
    "model": Decoder,
    "precision": Precision,
    "batch": Batch,
    "optimizer": AdamW,
    "mesh": Mesh,
    "checkpoint": Checkpoint,
    "metrics": Metrics,
}
"""Blocks whose fields are written in the order of the schema."""
_APPLY = ("pp", "tp", "cp", "ep", "fp8", "recompute", "compile", "fsdp")
"""The order that the compiler asks for."""
_WIDTH = 98
_RESERVED = frozenset(["if", "then", "else", "for", "in", "and", "or", "not", "true", "false", "none", "self", "auto"])


@define
class Node:
    """A value: a text, or a head with fields, `cosine { warmup = 2_000 steps }`."""

    text: str = ""
    fields: dict[str, Node] = Factory(dict)
    comment: str = ""

    def at(self, path: str) -> Node:
        """The node at a dotted path, made where it is missing."""
        node = self
        for name in path.split("."):
            node = node.fields.setdefault(name, Node())
        return node

    @property
    def is_record(self) -> bool:
        return bool(self.fields) or not self.text


@define
class Draft:
    """The values of one plan by path, and what must be imported for them."""

    name: str
    doc: str = ""
    remarks: list[str] = Factory(list)
    """Comments at the top of the file, a line each."""
    root: Node = Factory(Node)
    apply: dict[str, Node] = Factory(dict)
    evals: dict[str, Node] = Factory(dict)
    imports: dict[str, set[str]] = Factory(dict)

    def set(self, path: str, text: str, comment: str = "") -> None:
        """Give a value by its path; `apply.NAME.FIELD` and `eval.NAME.FIELD` reach into what they name."""
        first, _, rest = path.partition(".")
        if first in ("apply", "eval"):
            name, _, field = rest.partition(".")
            node = (self.apply if first == "apply" else self.evals).setdefault(name, Node())
            if not field:
                node.comment = comment or node.comment
                return
            node = node.at(field)
        else:
            node = self.root.at(path)
        node.text, node.comment = text, comment

    def use(self, module: str, name: str) -> str:
        """A name of a library, imported."""
        self.imports.setdefault(module, set()).add(name)
        return name

    def text(self) -> str:
        """The whole file, not yet in its one form."""
        lines = [f"# {line}".rstrip() for line in self.remarks]
        lines += ["forge 1", ""]
        lines += [
            f'from "{module}" import {", ".join(sorted(names))}' for module, names in sorted(self.imports.items())
        ]
        lines += ["", *(f"## {_one_line(line)}" for line in self.doc.splitlines()), f"plan {self.name} {{"]
        for name in sorted({*self.root.fields, "apply"}, key=_ORDER.__getitem__):
            if name == "apply":
                lines += self._program()
            else:
                lines += _statement(name, _in_order(name, self.root.fields[name]), 1)
        for name, node in self.evals.items():
            lines += ["", f"  eval {name} {{", *_fields(node, 2), "  }"]
        return "\n".join([*lines, "}", ""])

    def _program(self) -> list[str]:
        if not self.apply:
            return []
        steps = [_item(name, self.apply[name]) for name in sorted(self.apply, key=_APPLY.index)]
        return ["  apply = [", *(line for step in steps for line in step), "  ]"]


def identifier(text: str) -> str:
    """A name for a plan, made from the name of a file."""
    return word(text.lower(), "plan")


def word(text: str, prefix: str) -> str:
    """A name of the language that is like a text; `prefix` stands before what cannot be one."""
    name = re.sub(r"[^A-Za-z0-9_]+", "_", text).strip("_")
    return name if name and not name[0].isdigit() and name not in _RESERVED else f"{prefix}_{name}".rstrip("_")


def _one_line(text: str) -> str:
    """A text as a comment can hold it."""
    return "".join(c if c.isprintable() else " " for c in " ".join(text.split()))


def _statement(name: str, node: Node, depth: int) -> list[str]:
    indent, own = "  " * depth, f"  # {_one_line(node.comment)}" if node.comment else ""
    inline = _line(node)
    if inline is not None and len(indent) + len(name) + len(inline) + 3 <= _WIDTH:
        return [f"{indent}{name} = {inline}"]
    if not node.is_record:
        return [f"{indent}{name} = {node.text}{own}"]
    head = f"{node.text} {{" if node.text else "{"
    return [f"{indent}{name} = {head}{own}", *_fields(node, depth + 1), f"{indent}}}"]


def _fields(node: Node, depth: int) -> list[str]:
    return [line for name, field in node.fields.items() for line in _statement(name, field, depth)]


def _item(name: str, node: Node) -> list[str]:
    inline = _line(Node(name, node.fields, node.comment), ",")
    if inline is not None and len(inline) + 4 <= _WIDTH:
        return [f"    {inline}"]
    comment = f"  # {_one_line(node.comment)}" if node.comment else ""
    return [f"    {name} {{{comment}", *_fields(node, 3), "    },"]


def _in_order(name: str, node: Node) -> Node:
    """The node with its fields in the order of the schema, where that is known."""
    if name not in _FIELDS:
        return node
    known = [field.rstrip("_") for field in attrs.fields_dict(_FIELDS[name])]
    ordered = sorted(node.fields, key=lambda field: known.index(field) if field in known else len(known))
    return Node(node.text, {field: node.fields[field] for field in ordered}, node.comment)


def _remarks(node: Node) -> Iterable[str]:
    """The comments inside of a node, without its own."""
    for field in node.fields.values():
        yield from ([field.comment] if field.comment else [])
        yield from _remarks(field)


def _line(node: Node, end: str = "") -> str | None:
    """The node in one line with the one comment that it has, its own or one inside; None where there are more."""
    remarks = [*([node.comment] if node.comment else []), *_remarks(node)]
    inline = _inline(node) if len(remarks) < 2 else None
    return None if inline is None else f"{inline}{end}" + "".join(f"  # {_one_line(remark)}" for remark in remarks)


def _inline(node: Node) -> str:
    """The node in one line, without comments."""
    if not node.is_record:
        return node.text
    parts = [f"{name} = {_inline(field)}" for name, field in node.fields.items()]
    body = f"{{ {', '.join(parts)} }}" if parts else "{}"
    return f"{node.text} {body}" if node.text and parts else node.text or body
