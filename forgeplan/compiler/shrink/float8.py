"""Which patterns make float8 layers of the small model that are float8 in the large one?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from attrs import evolve

from forgeplan.compiler.facts import Facts
from forgeplan.compiler.passes.float8 import Report, report_of
from forgeplan.compiler.patterns import general, meant, module_names
from forgeplan.compiler.shrink.alike import Features, Found, most_alike
from forgeplan.compiler.shrink.layers import renumbered
from forgeplan.compiler.shrink.replaced import recipe_of

IDLE = "a pattern of float8 that names nothing"


def same_layers(whole: Facts, small: Facts) -> Found:
    """Patterns of `include` and `exclude`; where sizes decided, the names of what they left."""
    if recipe_of(whole) != "rowwise":
        return Found({})
    model, mesh, tp = small.block("model"), small.results("mesh"), small.transform("tp")

    def features(patterns: tuple[Any, Any]) -> Features:
        options = evolve(small.transform("fp8"), include=patterns[0], exclude=patterns[1])
        written = (*(() if patterns[0] == "all" else patterns[0]), *patterns[1])
        idle = any(not meant([pattern], module_names(model)) for pattern in written)
        return _features(report_of(model, mesh, tp.sequence, tp.kv, options)) | {IDLE: idle}

    wanted = _features(whole.results("float8")) | {IDLE: False}
    chosen = most_alike(wanted, _patterns(whole, small), features)
    include, exclude = chosen.best
    return chosen.found({"apply.fp8.include": include, "apply.fp8.exclude": exclude})


def _patterns(whole: Facts, small: Facts) -> Iterator[Any]:
    """Those of `include` and `exclude` as written; with other numbers of layers; by the kinds of layers; one by one."""
    include, exclude = whole.transform("fp8").include, whole.transform("fp8").exclude
    layers = (whole.block("model").layers, small.block("model").layers)
    report, renamed = whole.results("float8"), renumbered(exclude, *layers)
    yield include, exclude
    if include != "all":
        yield renumbered(include, *layers), renamed
    yield tuple(sorted({general(name) for name in report.converted})), renamed
    wanted, after = _features(report), small.results("float8")
    yield tuple(layer.name for layer in after.layers if wanted.get(_kind(after, layer.name))), ()


def _features(report: Report) -> dict[str, bool]:
    """For each kind of layer, whether the first, the last and those between are float8."""
    converted = set(report.converted)
    found: dict[str, bool] = {}
    for layer in report.layers:
        kind = _kind(report, layer.name)
        found[kind] = found.get(kind, True) and layer.name in converted
    return found


def _kind(report: Report, name: str) -> str:
    """`layers.*.mlp.w_up as float8`, of the first layer and of the last with a word for it."""
    alike = [layer.name for layer in report.layers if general(layer.name) == general(name)]
    where = "the first " if name == alike[0] else "the last " if name == alike[-1] else ""
    return f"{where}{general(name)} as float8"
