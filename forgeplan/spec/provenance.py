"""Who decided a value?"""

from __future__ import annotations

from typing import Any

from attrs import frozen

from forgeplan.diagnostics.span import Span


@frozen
class Origin:
    """One layer that set a value: where, by which text, and in which role.

    `layer` is "schema default", "computed", "plan NAME", "profile NAME", "cell NAME" or "command line".
    """

    span: Span
    layer: str
    text: str


@frozen
class Leaf:
    """A final value with every layer that set it, strongest first; the first one is in force."""

    value: Any
    origins: tuple[Origin, ...]

    @property
    def origin(self) -> Origin:
        return self.origins[0]

    @property
    def written(self) -> bool:
        """Whether a person wrote the value in force (not a schema default, not computed)."""
        return self.origins[0].layer not in ("schema default", "computed")
