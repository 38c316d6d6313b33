"""Does what is written depend on one machine, mix powers of two and ten, or tell a secret?"""

from __future__ import annotations

import re
from collections.abc import Iterator

from forgeplan.compiler.changes import Change
from forgeplan.compiler.facts import Fact, Facts
from forgeplan.compiler.invariants.registry import Finding, lint
from forgeplan.compiler.wording import listing
from forgeplan.diagnostics.codes import Level
from forgeplan.spec import types as t

_DECIMAL = re.compile(r"\d\s*(?:[kMBT]\b|[kMGT]B\b)")
_BINARY = re.compile(r"\d\s*[KMGT]i(?:B\b|\b)")
_PLAIN = re.compile(r"([\d_]+)([kMBT])(\s*tokens?)")
_BINARY_OF = {"k": "Ki", "M": "Mi", "B": "Gi", "T": "Ti"}
_RELATIONS = (("batch.global", "batch.length"), ("batch.length", "model.context"))
"""Values that have to divide or to hold one another."""


@lint("absolute-path", "input files are found from the project's folder")
def absolute_path(facts: Facts) -> Iterator[Finding]:
    for path, leaf in facts.leaves.items():
        if not isinstance(leaf.value, str) or not leaf.value.startswith(("/", "~")):
            continue
        setting = facts.setting(path)
        if setting is not None and isinstance(setting.type, t.PathText) and not setting.type.output:
            yield absolute_path.at(
                f'"{leaf.value}" is a place of one machine',
                facts[path],
                help=('write it relative to the project, or as a param: `param data: Path = "…"`, and --set data=…',),
            )


@lint("mixed-decimal-binary", "values that belong together are all powers of two, or all of ten")
def mixed_decimal_binary(facts: Facts) -> Iterator[Finding]:
    for paths in _RELATIONS:
        pair = [fact for path in paths if (fact := facts.get(path)) is not None and fact.written]
        kinds = {fact.path: _kind(fact) for fact in pair}
        if set(kinds.values()) >= {"ten", "two"}:
            yield mixed_decimal_binary.at(
                f"{listing((f'{p} is written in powers of {k}' for p, k in kinds.items()), ' and ')}: "
                f"{listing((fact.equation for fact in pair), ' and ')}",
                *pair,
                help=("k, M and B are powers of ten; Ki, Mi and Gi of two",),
                changes=[Change(f.path, binary) for f in pair if (binary := _in_powers_of_two(f))],
            )


def _in_powers_of_two(fact: Fact) -> str:
    """`2M tokens` as `2Mi tokens`; nothing for what is no such number."""
    number = _PLAIN.fullmatch(fact.origin.text if fact.origin else "")
    return f"{number[1]}{_BINARY_OF[number[2]]}{number[3]}" if number else ""


def _kind(fact: Fact) -> str:
    text = fact.origin.text if fact.origin else ""
    return "two" if _BINARY.search(text) else "ten" if _DECIMAL.search(text) else ""


@lint("unknown-fact", "the facts of the cluster that checks need are stated", Level.ALLOW)
def unknown_fact(facts: Facts) -> Iterator[Finding]:
    if facts["cluster.arch"].value == "cpu":
        return
    missing = [name for name in ("hbm", "bf16") if facts[f"cluster.{name}"].value is None]
    if missing:
        yield unknown_fact.at(
            f"{listing((f'cluster.{name}' for name in missing), ' and ')} "
            f"{'is' if len(missing) == 1 else 'are'} not stated, so that memory or speed is not looked at",
            *(facts[f"cluster.{name}"] for name in missing if facts[f"cluster.{name}"].written),
            facts["cluster.arch"],
            help=("`std:clusters` has machines with all their facts",),
        )
