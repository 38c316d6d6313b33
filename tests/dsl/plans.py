"""Plans for the tests of the language: a whole one, and ways to read texts without files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from forgeplan.compiler import derived_values
from forgeplan.diagnostics.diagnostic import Diagnostic
from forgeplan.dsl.load import Loaded, load
from forgeplan.spec.job import Job

CONTEXT = """forge 1

from "std:clusters" import h200_node
from "std:models" import llama3_8b

param peak_lr: Rate(1e-6 .. 1e-2) = 3e-4

partial plan context {
  cluster   = h200_node { devices_per_node = 4 }
  model     = llama3_8b { context = 4Ki tokens }
  tokenizer = byte
  sources   = { web = text { path = "shards/web/*.txt" } }
  batch     = { global = 2Mi tokens, micro = 4 sequences, length = 4Ki tokens }
  optimizer = adamw { lr = peak_lr }
  budget    = { tokens = 160B tokens }
}
"""


def read(
    text: str,
    *overrides: str,
    profile: str | None = None,
    plan: str | None = None,
    path: str | Path = "plan.forge",
) -> Loaded:
    """A whole text, as if it stood in `path`."""
    return load(str(path), text, derived=derived_values(), overrides=overrides, profile=profile, plan=plan)


def extended(body: str, *overrides: str, top: str = "", profile: str | None = None) -> Loaded:
    """A plan `example` that extends the context, with `top` before it."""
    return read(f"{CONTEXT}{top}\nplan example extends context {{\n{body}\n}}\n", *overrides, profile=profile)


def job_of(body: str, *overrides: str, top: str = "", profile: str | None = None) -> Job:
    """The job of a faultless extension of the context."""
    loaded = extended(body, *overrides, top=top)
    assert described(loaded.diagnostics) == []
    return loaded.job("example", profile)


def values(job: Job, *paths: str) -> list[object]:
    return [job.leaves[path].value for path in paths]


def described(diagnostics: Sequence[Diagnostic]) -> list[str]:
    return [f"{d.code}: {d.message}" for d in diagnostics]


def codes(loaded: Loaded) -> list[str]:
    return [d.code for d in loaded.diagnostics]


def only(loaded: Loaded) -> Diagnostic:
    """The one diagnostic there is."""
    assert len(loaded.diagnostics) == 1, described(loaded.diagnostics)
    return loaded.diagnostics[0]


def at(loaded: Loaded, diagnostic: Diagnostic) -> str:
    """The text under the primary label."""
    span = diagnostic.span
    assert span is not None
    source = loaded.sources.get(span.file)
    assert source is not None
    return source.text[span.start : span.end]


def labelled(loaded: Loaded, diagnostic: Diagnostic) -> list[str]:
    """The texts under all labels, primary first."""
    found = []
    for label in diagnostic.labels:
        source = loaded.sources.get(label.span.file)
        assert source is not None
        found.append(source.text[label.span.start : label.span.end])
    return found
