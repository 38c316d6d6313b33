"""Which data needs no files?"""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from attrs import frozen

from forgeplan.spec import types as t
from forgeplan.spec.registry import component
from forgeplan.spec.setting import setting


@component("source", "python_source")
@frozen
class PythonSource:
    """The standard library of the running interpreter as text, its tests left out; each module is a document."""

    needs_tokenizer: ClassVar[bool] = True
    shuffle: bool = setting(t.Bool(), "draw sequences in a seeded order, anew each epoch", default="true")


@component("source", "synthetic")
@frozen
class Synthetic:
    """A counter with noise: the next token is (t + 1) mod `states`, or with probability `noise` any, uniformly.

    Its entropy a token is known: −(1−n+n/k)·ln(1−n+n/k) − (k−1)·(n/k)·ln(n/k) for k states and noise n.
    """

    needs_tokenizer: ClassVar[bool] = False
    endless: ClassVar[bool] = True
    states: int = setting(t.COUNT, "different tokens", default="16", within="[2, )")
    noise: Fraction = setting(t.PORTION, "probability of a uniform draw", default="0%", within="[0, 1]")
    document: int | None = setting(
        t.optional(t.TOKEN_COUNT),
        "mean length of documents, each closed by id `states`; none is one endless document",
        default="none",
        within="[2, )",
    )
