"""Are the tensors of the small model divided like those of the large one?"""

from __future__ import annotations

from forgeplan.compiler.facts import Facts
from forgeplan.compiler.passes.parameters import parameters_of
from forgeplan.compiler.patterns import general
from forgeplan.compiler.shrink.alike import Found
from forgeplan.plan.sharding import Division, chunk, division


def divided_alike(whole: Facts, small: Facts) -> Found:
    """What is small and divided alike, or cannot be, by the name of the tensor for all layers."""
    before, after = _divisions(whole), _divisions(small)
    shared = [name for name in after if name in before and after[name].data > 1]
    features = {name: f"{name} {_words(before[name])}" for name in shared}
    kept = frozenset(features[name] for name in shared if _words(before[name]) == _words(after[name]))
    return Found({}, kept, frozenset(features.values()) - kept)


def _divisions(facts: Facts) -> dict[str, Division]:
    """One for each kind of tensor."""
    model, mesh, tp = facts.block("model"), facts.results("mesh"), facts.transform("tp")
    return {
        general(p.name): division(p.shape, p.cut, mesh, sequence=tp.sequence, kv=tp.kv)
        for p in parameters_of(model).all
    }


def _words(cut: Division) -> str:
    """How the data ranks hold what tp or ep left."""
    rows = cut.weight_shape[cut.data_dim]
    if rows % cut.data == 0:
        return "in equal parts"
    return "in unequal parts" if chunk(rows, cut.data, cut.data - 1)[1] else "on some of the ranks that share it only"
