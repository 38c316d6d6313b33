"""What is a value, what may it be, and which layers set it?"""

from __future__ import annotations

from forgeplan.compiler.derived import derived_values
from forgeplan.compiler.explain.fields import fields_below
from forgeplan.compiler.explain.inserted import why_absent, why_inserted, with_inserted
from forgeplan.compiler.explain.page import shortened, table, wrapped
from forgeplan.compiler.schema import setting_at
from forgeplan.compiler.wording import listing, plan_text, written_at
from forgeplan.diagnostics.refusal import UsageError
from forgeplan.diagnostics.source import Sources
from forgeplan.diagnostics.suggest import did_you_mean, nearest
from forgeplan.spec.job import Job
from forgeplan.spec.provenance import Leaf
from forgeplan.spec.setting import DERIVED, Setting


def explain_path(job: Job, path: str, sources: Sources, width: int = 80) -> str:
    """Value, type, range, default, doc, and every layer that set it, strongest first; then the fields of a component.

    A record has its fields alone. Raises UsageError for what is neither.
    """
    leaves, fields = with_inserted(job), fields_below(job, path, sources, width - 2)
    if path in leaves:
        lines = _written(leaves[path], path, setting_at(path, leaves), sources, width)
        lines += ["", *("  " + line for line in wrapped(why, width - 2))] if (why := why_inserted(path, job)) else []
        lines += ["", *("  " + line for line in fields)] if fields else []
    elif fields:
        lines = [path, *("  " + line for line in fields)]
    elif path in derived_values():
        lines = _derived(job, path, width)
    elif path in job.derived:
        lines = [f"{path} = {plan_text(job.derived[path])}", "  follows from the name of the run"]
    else:
        raise UsageError(_unknown(job, path))
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _written(leaf: Leaf, path: str, setting: Setting | None, sources: Sources, width: int) -> list[str]:
    value = plan_text(leaf.value, setting.type if setting else None)
    about = [] if setting is None else ["  " + line for line in wrapped(_about(setting), width - 2)]
    layers = [(o.layer, " ".join(o.text.split()), written_at(o.span, sources)) for o in leaf.origins]
    rest = width - 9 - sum(max(len(layer[i]) for layer in layers) for i in (0, 2))
    rows = [("→" if i == 0 else " ", name, shortened(text, rest), at) for i, (name, text, at) in enumerate(layers)]
    note = ["", "  → is in force, the strongest first"] if len(rows) > 1 else []
    return [f"{path} = {value}", *about, "", *("  " + row for row in table(rows, "llll")), *note]


def _about(setting: Setting) -> str:
    facts = [setting.doc, setting.type.describe()]
    if setting.within is not None:
        facts.append(
            f"in {setting.within.describe()}" if setting.within.high is not None else setting.within.describe()
        )
    if setting.required:
        facts.append("required")
    elif setting.default is DERIVED:
        facts.append("computed if not written")
    else:
        facts.append(f"default {setting.default}")
    return "; ".join([*facts, f"changing it: {setting.change.value}"])


def _derived(job: Job, path: str, width: int) -> list[str]:
    found = derived_values()[path]
    value = job.derived.get(path)
    text = "not known, as a fact it needs is not stated" if value is None else plan_text(value, found.type)
    about = f"{found.doc[:1].lower()}{found.doc[1:]}; computed from {listing(found.reads)}; cannot be assigned"
    return [f"{path} = {text}", *("  " + line for line in wrapped(about, width - 2))]


def _unknown(job: Job, path: str) -> str:
    known = [*with_inserted(job), *derived_values(), *job.derived]
    if absent := why_absent(path, job):
        return f"the plan has no `{path}`: {absent}"
    meant = nearest(path, known)
    return f"the plan has no `{path}`" + (f"; {did_you_mean(meant)}" if meant else "")
