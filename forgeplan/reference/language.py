"""What does a reader need beside the fields: classes of change, values that are computed, units, functions?"""

from __future__ import annotations

from attrs import frozen

from forgeplan.reference.wording import dimension_name, field_type

INTRODUCTION = (
    "Every record, component and field of a plan, made from the schema itself: what a value may be, in which unit and"
    " range, what stands in its place if nobody writes it, and what another value means for a run that has checkpoints"
    " ([change](#change)). The guide is [language.md](../language.md); `forgeplan explain FILE path` shows one value"
    " with all this and who decided it. For programs: `forgeplan schema` prints the JSON Schema of the job in a"
    " compiled plan.",
    "A default is an expression of the language, evaluated at the end, where `self` is the record. A dotted path"
    " reaches a field from anywhere: `model.layers = 2`, `apply.recompute.mode = selective`, `--set mesh.tp=2`.",
)


@frozen
class Table:
    title: str
    anchor: str
    doc: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def tables() -> tuple[Table, ...]:
    return (_changes(), _derived(), _units(), _functions())


def _changes() -> Table:
    meanings = {
        "cosmetic": "nothing that is trained changes",
        "resumable": "a run goes on from its checkpoints, with other values from there on",
        "re-shard": "a run goes on: the same state, in another layout",
        "new run": "another function, or other data: a run does not go on across it (FP1016)",
    }
    from forgeplan.spec.setting import Change

    doc = "What another value means for a run that has checkpoints; `forgeplan diff` says it of two plans."
    rows = tuple((change.value, meanings[change.value]) for change in Change)
    return Table("Classes of change", "change", doc, ("class", "means"), rows)


def _derived() -> Table:
    from forgeplan.compiler import derived_values

    rows = []
    for path, derived in derived_values().items():
        type_ = "".join(part if isinstance(part, str) else part.text for part in field_type(derived.type))
        rows.append((f"`{path}`", type_, " ".join(derived.doc.split())))
    doc = (
        "Computed by the compiler, to be read in any expression. Those that are fields too are computed where nobody"
        " writes them; the others are never assigned. Of names there are `plan.name`, `run.name` (the plan, with its"
        " profile and sweep cell) and `run.dir`, the folder of the run."
    )
    return Table("Computed values", "computed-values", doc, ("value", "type", "meaning"), tuple(rows))


def _units() -> Table:
    from forgeplan.dsl.units import UNITS

    by_dimension: dict[str, list[str]] = {}
    for unit, (_, dimension) in UNITS.items():
        by_dimension.setdefault(dimension_name(dimension), []).append(f"`{unit}`")
    doc = (
        "Numbers are exact, and `11_008` and `5e-4` are what they say. A count may have a multiplier at the digits,"
        " `2k`, `7B` or `4Ki`: k, M, B, T are powers of ten; Ki, Mi, Gi of two."
    )
    rows = tuple((name, " ".join(units)) for name, units in by_dimension.items())
    return Table("Units", "units", doc, ("of", "units"), rows)


def _functions() -> Table:
    from forgeplan.dsl.functions import FUNCTIONS

    rows = []
    for name, (least, most, _) in FUNCTIONS.items():
        rows.append((f"`{name}`", "one" if most == 1 else f"{least} or more" if least else "any number"))
    doc = "There are no others; operators are `+ - * / // % **`, comparisons, `and or not in`, and `..` for a range."
    return Table("Functions", "functions", doc, ("function", "arguments"), tuple(rows))
