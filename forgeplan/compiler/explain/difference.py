"""What does a person read of two plans that differ?"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from forgeplan.compiler.explain.page import section, shortened, table, wrapped
from forgeplan.compiler.wording import bytes_text, count, plan_text
from forgeplan.plan.changes import ABSENT, Difference
from forgeplan.plan.diff import Consequence, Diff, Step
from forgeplan.plan.job_codec import encode
from forgeplan.spec.setting import Change

_LONGEST_VALUE = 40
_NAMED = 4
_SIGNS = {"added": "+", "removed": "-", "changed": "~", "moved": "~"}
_VERDICTS = {
    Change.COSMETIC: "resume: yes; what is trained stays the same",
    Change.RESUMABLE: "resume: yes; training goes on with other values",
    Change.RESHARD: "resume: yes, re-shard; the same state goes into another layout",
    Change.NEW_RUN: "resume: no, a new run",
}


def explain_diff(found: Diff, names: tuple[str, str], width: int = 80) -> str:
    """Changed fields by class, the program, what follows, and whether a run of the second goes on from the first."""
    parts = [_heads(found, names)]
    for change in reversed(Change):
        rows = [_row(one, found) for one in found.changes if one.change is change]
        parts += [section(change.value.upper(), _lines(rows, width - 2), width)] if rows else []
    if found.program:
        parts.append(section("PROGRAM", _lines(map(_step, found.program), width - 2), width))
    if found.consequences:
        parts.append(section("FOLLOWS", _lines(map(_consequence, found.consequences), width - 2), width))
    parts.append([line for said in (_verdict(found), *_elsewhere(found)) for line in wrapped(said, width, "  ")])
    return "\n\n".join("\n".join(line.rstrip() for line in part) for part in parts) + "\n"


def _heads(found: Diff, names: tuple[str, str]) -> list[str]:
    plans = zip("AB", names, (found.a, found.b), strict=True)
    return table([(side, name, f"plan {plan.name}", f"hash {plan.meaning[:12]}") for side, name, plan in plans], "llll")


def _lines(rows: Iterable[tuple[str, str, str]], width: int) -> list[str]:
    return [shortened(line, width) for line in table(list(rows), "lll")]


def _row(one: Difference, found: Diff) -> tuple[str, str, str]:
    old, new = _text(one.old, one), _text(one.new, one)
    if old == new:  # A person's spelling rounds the smallest numbers.
        old, new = (str(encode(value)) for value in (one.old, one.new))
    short = [shortened(text, _LONGEST_VALUE) for text in (old, new)]
    return one.path, " → ".join(short if short[0] != short[1] else (old, new)), _who(one, found)


def _text(value: Any, one: Difference) -> str:
    return "—" if value is ABSENT else plan_text(value, one.type)


def _who(one: Difference, found: Diff) -> str:
    """Where the value was written: in the second plan, or in the first where the second says nothing."""
    if one.follows:
        return "computed"
    for side, plan in (("", found.b), ("A: ", found.a)):
        layer = plan.provenance.get(one.path, ("",))[0].partition(" = ")[0]
        if layer not in ("", "schema default", "computed"):
            place, _, _ = layer.partition(" ")
            return side + (place if ":" in place else layer)
    return ""


def _step(step: Step) -> tuple[str, str, str]:
    if step.what == "moved":
        return _SIGNS[step.what], step.name, "stands elsewhere"
    told = [_option(name, *pair) for name, pair in step.options.items()]
    return _SIGNS[step.what], step.name, ", ".join(told)


def _option(name: str, old: Any, new: Any) -> str:
    if ABSENT in (old, new):
        return f"{name} {_value(new if old is ABSENT else old)}"
    return f"{name} {_value(old)} → {_value(new)}"


def _value(value: Any) -> str:
    if isinstance(value, tuple) and len(value) > _NAMED:
        return f"[{len(value)} of them]"
    return plan_text(value)


def _consequence(one: Consequence) -> tuple[str, str, str]:
    sides = [_figure(value, one.unit) for value in (one.old, one.new)]
    if sides[0] == sides[1]:
        sides = [_figure(value, "") for value in (one.old, one.new)]
    return one.name, " → ".join(sides), ""


def _figure(value: int | None, unit: str) -> str:
    if value is None:
        return "open"
    return bytes_text(value) if unit == "bytes" else count(value)


def _verdict(found: Diff) -> str:
    if found.is_equal and not found.changes:
        return "the same plan"
    if found.is_equal:
        return "equal in meaning: only where output goes, or what is not trained, differs"
    because = found.reasons if found.change is Change.NEW_RUN else ()
    more = f" and {len(because) - _NAMED} more" if len(because) > _NAMED else ""
    return _VERDICTS[found.change] + (f": {', '.join(because[:_NAMED])}{more}" if because else "")


def _elsewhere(found: Diff) -> list[str]:
    """A run finds only the checkpoints of its own folder."""
    a, b = (plan.job.checkpoint.path for plan in (found.a, found.b))
    if a == b or not found.resumes:
        return []
    return [f'note: B looks for checkpoints in {b}; to go on with those of A it needs `checkpoint.path = "{a}"`']
