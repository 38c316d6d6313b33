"""Which cells does a sweep have, and what does each set?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from math import prod

from attrs import frozen

from forgeplan.diagnostics.codes import code
from forgeplan.diagnostics.diagnostic import Diagnostic, Label
from forgeplan.diagnostics.span import Span
from forgeplan.diagnostics.suggest import choice, did_you_mean, nearest
from forgeplan.dsl import syntax
from forgeplan.dsl.bindings import declare_values
from forgeplan.dsl.imports import Module
from forgeplan.dsl.layers import Contribution, Group
from forgeplan.dsl.scope import Binding, ParamBinding, Scope
from forgeplan.dsl.shapes import Given
from forgeplan.dsl.values import Poison, kind_of, show
from forgeplan.dsl.view import View, override
from forgeplan.spec.quantity import RUNS, Quantity

NO_AXIS = code("FP0319", "a sweep axis is a settable field or a param of the base, named once over axes and zips")
CELLS = code("FP0320", "zipped axes have equal lengths, and 1 ≤ cells after `exclude` ≤ `limit`")

DEFAULT_LIMIT = 1_000

Params = Mapping[Binding, tuple[syntax.Expr, Scope]]
ViewOf = Callable[[tuple[Contribution, ...], Params], View]


@frozen(eq=False)
class Cell:
    """One combination of values."""

    name: str
    over: tuple[Contribution, ...]
    params: Params


@frozen(eq=False)
class Axis:
    """A path or param with its values."""

    path: syntax.Path
    param: ParamBinding | None
    values: tuple[syntax.Expr, ...]
    scope: Scope


def cells_of(sweep: syntax.Sweep, module: Module, view_of: ViewOf, report: Callable[[Diagnostic], None]) -> list[Cell]:
    """The cells in order, those excluded left out. Empty where the sweep is faulty, which is reported."""
    base = view_of((), {})
    scope = module.scope.inside(base.root)
    declare_values(sweep.items, scope, report)
    limit, fixed = _settings(sweep, scope, base, report)
    groups = _groups(sweep, module, scope, base, report)
    if groups is None or limit is None:
        return []
    total = prod(len(group[0].values) for group in groups)
    if total > 100 * limit:
        report(_too_many(sweep, groups, total, limit))
        return []
    rounds = product(*(range(len(group[0].values)) for group in groups))
    cells = [_cell(sweep, number, groups, chosen, scope, fixed) for number, chosen in enumerate(rounds)]
    excludes = [item for item in sweep.items if isinstance(item, syntax.Exclude)]
    try:
        kept = [cell for cell in cells if not _excluded(cell, excludes, view_of, scope, report)]
    except Poison:
        return []
    if not kept or len(kept) > limit:
        report(_too_many(sweep, groups, len(kept), limit))
        return []
    return kept


def _settings(
    sweep: syntax.Sweep, scope: Scope, base: View, report: Callable[[Diagnostic], None]
) -> tuple[int | None, list[syntax.Assign]]:
    """The limit (None if it is faulty), and the overrides that every cell has."""
    limit: int | None = DEFAULT_LIMIT
    fixed: list[syntax.Assign] = []
    for item in sweep.items:
        if isinstance(item, syntax.ErrorItem):
            limit = None
        elif isinstance(item, syntax.Assign) and item.path.text == "limit":
            limit = _limit(item, scope, base, report)
        elif isinstance(item, syntax.Assign):
            fixed.append(item)
    return limit, fixed


def _limit(item: syntax.Assign, scope: Scope, base: View, report: Callable[[Diagnostic], None]) -> int | None:
    try:
        value = base.ev.evaluate(item.value, scope)
    except Poison:
        _forward(base, report)
        return None
    if isinstance(value, Quantity) and value.dimension == RUNS and isinstance(value.amount, int) and value.amount > 0:
        return value.amount
    message = f"`limit` takes a number of runs, such as `12 runs`, not {show(value)}"
    report(CELLS.at(item.value.span, message))
    return None


def _groups(
    sweep: syntax.Sweep, module: Module, scope: Scope, base: View, report: Callable[[Diagnostic], None]
) -> list[list[Axis]] | None:
    """Axes that go together: one for each `axis`, several for a `zip`. None if one is faulty."""
    groups: list[list[Axis]] = []
    seen: dict[str, Span] = {}
    faulty = False
    for item in sweep.items:
        written = item.axes if isinstance(item, syntax.Zip) else (item,) if isinstance(item, syntax.SweepAxis) else ()
        group = [_axis(axis, module, scope, base, report) for axis in written]
        for axis in written:
            first = seen.setdefault(axis.path.text, axis.path.span)
            if first is not axis.path.span:
                message = f"`{axis.path.text}` is an axis twice"
                report(NO_AXIS.at(Label(axis.path.span, "again here"), message, Label(first, "first here")))
                faulty = True
        if any(axis is None for axis in group):
            faulty = True
        elif group:
            axes = [axis for axis in group if axis is not None]
            faulty |= not _equally_long(axes, report)
            groups.append(axes)
    if not groups and not faulty and not any(isinstance(i, syntax.ErrorItem) for i in sweep.items):
        report(CELLS.at(sweep.name.span, f"the sweep `{sweep.name.text}` has no axis", help="`axis seed in 0 .. 2`"))
    return None if faulty or not groups else groups


def _axis(
    axis: syntax.SweepAxis, module: Module, scope: Scope, base: View, report: Callable[[Diagnostic], None]
) -> Axis | None:
    param = module.scope.names.get(axis.path.text)
    if not isinstance(param, ParamBinding):
        param = None
        if not _settable(axis, base, module, report):
            return None
    try:
        if isinstance(axis.values, syntax.ListExpr):
            return Axis(axis.path, param, axis.values.items, scope)
        value = base.ev.evaluate(axis.values, scope)
        items = base.ev.items(value, axis.values.span)
    except Poison:
        _forward(base, report)
        return None
    return Axis(axis.path, param, tuple(Given(item, span=axis.values.span) for item in items), scope)


def _settable(axis: syntax.SweepAxis, base: View, module: Module, report: Callable[[Diagnostic], None]) -> bool:
    names = [n.text for n in axis.path.names]
    try:
        slot = base.slot(names)
    except Poison:
        return False
    if slot is not None:
        return True
    path = axis.path.text
    if base.is_derived(path):
        message = f"`{path}` is a derived value, and an axis sets a field or a param"
        report(NO_AXIS.at(axis.path.span, message, help=f"it is computed from {choice(base.reads_of(path))}"))
        return False
    params = [n for n, b in module.scope.names.items() if isinstance(b, ParamBinding)]
    parent = base.slot(names[:-1]) if len(names) > 1 else base.root
    near = nearest(names[-1], [*(parent.names() if parent else ()), *(params if len(names) == 1 else ())])
    known = f"params: {choice(params)}" if params else ()
    help = did_you_mean(".".join([*names[:-1], near])) if near else known
    report(NO_AXIS.at(axis.path.span, f"`{path}` is neither a field of the plan nor a param", help=help))
    return False


def _equally_long(axes: list[Axis], report: Callable[[Diagnostic], None]) -> bool:
    if len({len(axis.values) for axis in axes}) <= 1:
        return True
    labels = [Label(axis.path.span, f"{len(axis.values)} values") for axis in axes]
    report(CELLS.at(labels[0], "zipped axes have different lengths", *labels[1:]))
    return False


def _cell(
    sweep: syntax.Sweep,
    number: int,
    groups: list[list[Axis]],
    chosen: tuple[int, ...],
    scope: Scope,
    fixed: list[syntax.Assign],
) -> Cell:
    name = f"{sweep.name.text}-{number}"
    group = Group(f"cell {name}")
    over = [override(f.path.names, f.value, scope, group, f.path.span) for f in fixed]
    params: dict[Binding, tuple[syntax.Expr, Scope]] = {}
    for axes, index in zip(groups, chosen, strict=True):
        for axis in axes:
            if axis.param is not None:
                params[axis.param] = (axis.values[index], axis.scope)
            else:
                over.append(override(axis.path.names, axis.values[index], axis.scope, group, axis.path.span))
    return Cell(name, tuple(over), params)


def _excluded(
    cell: Cell, excludes: list[syntax.Exclude], view_of: ViewOf, scope: Scope, report: Callable[[Diagnostic], None]
) -> bool:
    """Whether a condition leaves the cell out. Raises Poison if one cannot be evaluated."""
    if not excludes:
        return False
    view = view_of(cell.over, cell.params)
    try:
        for item in excludes:
            value = view.ev.evaluate(item.condition, scope)
            if not isinstance(value, bool):
                message = f"a condition is true or false, not {kind_of(value)}"
                raise view.ev.fault(CELLS.at(item.condition.span, message))
            if value:
                return True
    except Poison:
        _forward(view, report)
        raise
    return False


def _forward(view: View, report: Callable[[Diagnostic], None]) -> None:
    for diagnostic in view.diagnostics:
        report(diagnostic)


def _too_many(sweep: syntax.Sweep, groups: list[list[Axis]], left: int, limit: int) -> Diagnostic:
    sizes = " × ".join(f"{len(axes[0].values)} ({' and '.join(a.path.text for a in axes)})" for axes in groups)
    labels = [Label(axes[0].path.span, f"{len(axes[0].values)} values") for axes in groups]
    if left == 0:
        return CELLS.at(sweep.name.span, f"`exclude` leaves no cell of {sizes}", *labels)
    message = f"the sweep `{sweep.name.text}` has {left:,} cells, and its limit is {show(Quantity(limit, RUNS))}"
    return CELLS.at(sweep.name.span, message, *labels, help=f"`limit = {left} runs`", notes=f"cells: {sizes}")
