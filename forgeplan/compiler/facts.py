"""What is known about a job, value by value, and who decided it?

Everything that checks read comes from here. A value that was rejected before is no fact: reading it raises `Poisoned`,
which silences the check that reads it, so that one cause gives one message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import field, frozen

from forgeplan.compiler.schema import setting_at
from forgeplan.compiler.wording import plan_text
from forgeplan.diagnostics.diagnostic import Label
from forgeplan.diagnostics.span import SCHEMA, Span
from forgeplan.plan.operations import OPERATIONS
from forgeplan.spec.provenance import Leaf, Origin
from forgeplan.spec.setting import Setting


class Poisoned(Exception):
    """A value that was rejected is read. The message is its path."""


def is_bare_option(path: str, leaves: Mapping[str, Leaf]) -> bool:
    """Whether a path is that of an option of a transform which `apply` leaves out."""
    head, *names = path.split(".")
    return head == "apply" and len(names) > 1 and names[0] in OPERATIONS and f"apply.{names[0]}" not in leaves


@frozen
class Fact:
    """A final value. `leaf` is None for a derived value."""

    path: str
    value: Any
    leaf: Leaf | None = None
    setting: Setting | None = field(default=None, repr=False)

    @property
    def origin(self) -> Origin | None:
        return self.leaf.origin if self.leaf else None

    @property
    def written(self) -> bool:
        """Whether a person wrote the value (`auto` is not a value)."""
        return self.leaf is not None and self.leaf.written and not self.is_auto

    @property
    def is_auto(self) -> bool:
        """Whether the compiler chose the value of a field that takes `auto`."""
        if self.leaf is None:
            return False
        first, *below = self.leaf.origins
        asking = below[0] if first.layer == "computed" and below else first
        return asking.text.strip() == "auto"

    @property
    def text(self) -> str:
        """The value in the plan language, with its unit: `2_097_152 tokens`."""
        return plan_text(self.value, self.setting.type if self.setting else None)

    @property
    def equation(self) -> str:
        """`model.heads = 32`."""
        return f"{self.path} = {self.text}"

    def label(self, text: str = "") -> Label | None:
        """The place that decided the value, or None where no text did (schema default, derived)."""
        if self.origin is None or self.origin.span.file == SCHEMA:
            return None
        return Label(self.origin.span, text or self.equation)

    @property
    def source(self) -> str:
        """Where a value without a place comes from: "schema default" or "computed"."""
        if self.is_auto:
            return "auto"
        return self.origin.layer if self.origin else "computed"


@frozen
class Facts:
    """The facts of one job; `facts["model.heads"]` is a Fact. Raises Poisoned for what was rejected."""

    leaves: Mapping[str, Leaf]
    derived: Mapping[str, Any]
    blocks: Mapping[str, Any]
    name: str
    plan_name: str
    file: str
    project: Path
    plan_place: Span
    """Of the plan's name."""
    is_damaged: bool = False
    """Whether a statement of the plan was not understood: what seems missing may be it."""
    bare: Callable[[str], tuple[Mapping[str, Leaf], Any]] = field(default=lambda name: ({}, None), eq=False, repr=False)
    """What a transform that `apply` leaves out would be without options; see `Job.bare`."""
    output_roots: tuple[Path, ...] = ()
    """Folders outside the project that `forge.toml` opens for output."""
    results: Callable[[str], Any] = field(default=lambda name: {}[name], eq=False, repr=False)
    """The result of an analysis, by its name."""
    _settings: dict[str, Setting | None] = field(factory=dict, eq=False, repr=False, alias="settings")
    """Those that were asked for; the same leaves have the same settings."""
    legal: Callable[[Sequence[Mapping[str, Any]]], list[Mapping[str, Any]]] = field(
        default=lambda candidates: [], eq=False, repr=False
    )
    """Which of several sets of other values, by path, satisfy every check; see `compiler/checking.py`."""

    def __getitem__(self, path: str) -> Fact:
        leaf = self.leaves.get(path) or self._inserted(path).get(path)
        if leaf is not None:
            return Fact(path, leaf.value, leaf, self.setting(path))
        if self.derived.get(path) is not None:
            return Fact(path, self.derived[path])
        raise Poisoned(path)

    def get(self, path: str) -> Fact | None:
        """The fact, or None where the plan has no such part (`checkpoint.every` without a checkpoint)."""
        if path in self.leaves or path in self.derived or path in self._inserted(path):
            return self[path]
        above = path
        while "." in above:
            above = above.rpartition(".")[0]
            if above in self.blocks or (above in self.leaves and self.leaves[above].value is None):
                return None
        raise Poisoned(path)

    def block(self, path: str) -> Any:
        """The structured object of a record, component, map or list of components."""
        if path in self.blocks:
            return self.blocks[path]
        leaf = self.leaves.get(path)
        if leaf is not None and leaf.value is None:
            return None
        raise Poisoned(path)

    def transform(self, name: str) -> Any:
        """The options of a transform: as `apply` has them, or with all defaults where it leaves the transform out."""
        options = self.blocks.get(f"apply.{name}") or self.bare(name)[1]
        if options is None:
            raise Poisoned(f"apply.{name}")
        return options

    def _inserted(self, path: str) -> Mapping[str, Leaf]:
        """The options, all at their defaults, of a transform in the program that `apply` leaves out."""
        if "apply" not in self.leaves or not is_bare_option(path, self.leaves):
            return {}
        name = path.split(".")[1]
        degree = self.leaves.get(f"mesh.{name}")
        if OPERATIONS[name].always or (degree is not None and degree.value > 1):
            return self.bare(name)[0]
        return {}

    def setting(self, path: str) -> Setting | None:
        """What the schema says about the field at a path."""
        if path not in self._settings:
            self._settings[path] = setting_at(path, self.leaves)
        return self._settings[path]

    def place(self, *paths: str) -> Span:
        """A span for a part of the plan: its own, or that of the first value below it that a file wrote.

        Of several paths, for the first that has a place; the plan's name where none has.
        """
        for path in paths:
            for candidate in (path, *(p for p in self.leaves if p.startswith(path + "."))):
                leaf = self.leaves.get(candidate)
                if leaf is not None and leaf.origin.span.file != SCHEMA:
                    return leaf.origin.span
        return self.plan_place

    def legal_values(self, path: str, candidates: Iterable[Any]) -> list[Any]:
        """Of the candidates for the field at `path`, in their order, those with which every check holds."""
        return [values[path] for values in self.legal([{path: value} for value in candidates])]
