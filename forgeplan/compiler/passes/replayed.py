"""Which blocks are computed again in backward?"""

from __future__ import annotations

from fnmatch import fnmatchcase

from forgeplan.compiler.passes.manager import Results, analysis


@analysis("replayed")
def replayed(results: Results) -> tuple[str, ...]:
    """Names of the blocks that `recompute` is for, in the order of forward."""
    options, model = results.facts.transform("recompute"), results.facts.block("model")
    names = [f"layers.{i}" for i in range(model.layers)] + [f"mtp.{k}.block" for k in range(model.mtp)]
    named = [n for n in names if options.only is None or any(fnmatchcase(n, pattern) for pattern in options.only)]
    return tuple(named[options.every - 1 :: options.every] if options.mode == "every" else named)
