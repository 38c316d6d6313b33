"""Does every pattern of `apply` mean a part of this model?"""

from __future__ import annotations

from collections.abc import Iterator

from forgeplan.compiler.changes import Change
from forgeplan.compiler.facts import Fact, Facts
from forgeplan.compiler.invariants.registry import Finding, invariant
from forgeplan.compiler.passes.replayed import blocks_of
from forgeplan.compiler.patterns import general, meant, module_names
from forgeplan.compiler.wording import listing
from forgeplan.diagnostics.suggest import choice, ranked

WITH_PATTERNS = ("apply.fp8.include", "apply.fp8.exclude", "apply.recompute.only")


@invariant("FP0444", "every pattern of names in `apply` means a module of the model")
def patterns_mean_modules(facts: Facts) -> Iterator[Finding]:
    for path in WITH_PATTERNS:
        fact = facts.get(path)
        if fact is None or fact.value is None or isinstance(fact.value, str):
            continue
        model = facts.block("model")
        modules = module_names(model)
        known = blocks_of(model) if path.endswith(".only") else modules
        for pattern in fact.value:
            if not meant([pattern], modules):
                yield patterns_mean_modules.at(
                    f'"{pattern}" in {path} is the name of no module',
                    fact,
                    *([facts["model.layers"]] if any(map(str.isdigit, pattern)) else []),
                    help=_help(pattern, known),
                    changes=_renamed(fact, pattern, known),
                )


def _renamed(fact: Fact, pattern: str, known: tuple[str, ...]) -> Iterator[Change]:
    """The list with the likeliest name in place of one."""
    for near in _near(pattern, known)[:1]:
        yield Change(fact.path, "[{}]".format(listing(f'"{near if p == pattern else p}"' for p in fact.value)))


def _help(pattern: str, known: tuple[str, ...]) -> list[str]:
    """Names that may be meant; else all of them, the layers at once."""
    near = _near(pattern, known)
    if near:
        return [f"did you mean {choice(near[:3])}?"]
    return [f"modules of this model: {listing(dict.fromkeys(map(general, known)))}"]


def _near(pattern: str, known: tuple[str, ...]) -> list[str]:
    """Names that may be meant."""
    names = list(dict.fromkeys(map(general, known)))
    near = ranked(pattern, known) if any(map(str.isdigit, pattern)) else ranked(pattern, names)
    return near or [name for name in names if ranked(pattern, [name.rpartition(".")[2]])]
