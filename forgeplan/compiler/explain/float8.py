"""Which linear layers are computed in float8, and why not the others?"""

from __future__ import annotations

import re

from forgeplan.compiler.explain.page import table, wrapped
from forgeplan.compiler.explain.written import layout, transform
from forgeplan.compiler.passes.float8 import Linear, report_of
from forgeplan.compiler.wording import plural
from forgeplan.plan.execution_plan import ExecutionPlan

NUMBER = re.compile(r"(?<=\.)\d+(?=\.)")


def lines(plan: ExecutionPlan, width: int) -> list[str]:
    """How many layers are converted, then a row for all of equal name, size and fate; nothing without fp8."""
    options, where = transform(plan, "fp8"), layout(plan)
    if options is None:
        return []
    layers = report_of(plan.job.model, plan.mesh, where.sequence, where.kv, options).layers
    converted = sum(layer.why is None for layer in layers)
    recipe = options.recipe + (", emulated" if options.emulate else "")
    gathered = " Their weights are gathered in float8." if options.all_gather else ""
    said = f"{recipe}: {converted:,} of {plural(len(layers), 'linear layer')} become float8.{gathered}"
    return [*wrapped(said, width), "", *_rows(layers, plan.mesh.tp > 1, width)]


def _rows(layers: tuple[Linear, ...], is_cut: bool, width: int) -> list[str]:
    groups: dict[tuple[str, int, int, str], list[str]] = {}
    for layer in layers:
        key = (NUMBER.sub("*", layer.name), layer.inputs, layer.outputs, layer.reason)
        groups.setdefault(key, []).append(layer.name)
    rows = [("", "", "K × N" + (" of a rank" if is_cut else ""), "")]
    rows += [
        (f"{len(names):,}", pattern if len(names) > 1 else names[0], f"{inputs:,} × {outputs:,}", reason or "float8")
        for (pattern, inputs, outputs, reason), names in groups.items()
    ]
    found = table(rows, "rlrl")
    if all(len(line) <= width for line in found):
        return found
    # Sizes give way to reasons.
    return table([(number, name, reason) for number, name, _, reason in rows[1:]], "rll")
