"""How does a plan become a small one on a small mesh, with every feature, transform and option?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import gcd
from typing import Any

from attrs import frozen

from forgeplan.compiler.checking import check, facts_of
from forgeplan.compiler.emission import emit
from forgeplan.compiler.facts import Fact, Facts
from forgeplan.compiler.shrink.alike import Found
from forgeplan.compiler.shrink.batch import few_steps, small_step
from forgeplan.compiler.shrink.experts import few_experts
from forgeplan.compiler.shrink.float8 import same_layers
from forgeplan.compiler.shrink.layers import fewest_layers, named_again
from forgeplan.compiler.shrink.meshes import Arrangement, some_of
from forgeplan.compiler.shrink.replaced import DATA, replaced, why
from forgeplan.compiler.shrink.tensors import divided_alike
from forgeplan.compiler.shrink.widths import few_heads, narrow_mlps, small_vocabulary
from forgeplan.compiler.wording import listing
from forgeplan.diagnostics.diagnostic import Severity
from forgeplan.diagnostics.refusal import InternalError
from forgeplan.plan.mesh import AXES, Mesh
from forgeplan.plan.proof import Changed, Trial
from forgeplan.spec.job import ABSENT, Job

FOLLOWING = ("batch.global", "model.pad_vocab")
"""Fields that are computed where nobody writes them, and belong to sizes that are smaller."""
LISTS = ("apply", "metrics.sinks")
"""Names whose options stand at paths of their own."""
UNLISTED = ("sources", "tokenizer", "mixture", "eval")
"""What is said in other words, or does not take part."""


@frozen
class Shrunk:
    """A trial, what stands for values of another kind, and what of the plan it keeps and does not keep."""

    trial: Trial
    replaced: tuple[Changed, ...]
    kept: frozenset[str]
    lost: frozenset[str]


def shrunk(job: Job, at: Arrangement) -> Shrunk:
    """The small plan on a small mesh. Raises InternalError where it breaks a rule that the large one keeps."""
    whole = facts_of(job)
    heads = few_heads(whole, at)
    founds = [
        fewest_layers(whole, at),
        heads,
        narrow_mlps(whole, at),
        small_vocabulary(whole, at),
        few_experts(whole, at, heads.values["model.dim"]),
        small_step(whole, at),
        few_steps(whole),
        _placed(whole, at),
        Found(replaced(whole)),
    ]
    small = _varied(job, founds)
    founds.append(_kept(whole, small, founds))
    small = _varied(job, founds)
    founds += _patterns(whole, small)
    small = _varied(job, founds)
    _check(small)
    after = facts_of(small)
    changes = tuple(_changes(whole, after))
    founds.append(divided_alike(whole, after))
    return Shrunk(
        Trial(emit(small), tuple(change for change in changes if not change.why)),
        tuple(change for change in changes if change.why),
        frozenset[str]().union(*(found.kept for found in founds)),
        frozenset[str]().union(*(found.lost for found in founds)),
    )


def _varied(job: Job, founds: Iterable[Found]) -> Job:
    """What is taken out goes first, and what is inside of another value stands behind it."""
    values = {path: value for found in founds for path, value in found.values.items()}
    return job.vary(dict(sorted(values.items(), key=lambda item: (item[1] is not ABSENT, item[0].count(".")))))


def _kept(whole: Facts, small: Job, founds: Iterable[Found]) -> Found:
    """Values that nobody made smaller, and that changed all the same, because they were written in terms of others."""
    given = {path: value for found in founds for path, value in found.values.items()}
    values = {path: leaf.value for path, leaf in whole.leaves.items() if path not in FOLLOWING}
    values["apply"] = tuple(name for name in values["apply"] if given.get(f"apply.{name}") is not ABSENT)
    changed = {path for path, value in values.items() if path not in small.leaves or small.leaves[path].value != value}
    if "apply" in changed:
        changed |= {path for path in values if _is_below(path, "apply")}
    free = (path for path in values if path in changed and not any(_is_below(path, above) for above in given))
    return Found({path: values[path] for path in free})


def _is_below(path: str, above: str) -> bool:
    return path == above or path.startswith(f"{above}.")


def _patterns(whole: Facts, small: Job) -> Iterator[Found]:
    """Patterns of names, which depend on what the small model has."""
    every = small.leaves.get("apply.recompute.every")
    yield named_again(whole, small.blocks["model"], every.value if every else 1)
    yield same_layers(whole, facts_of(small))


def _check(job: Job) -> None:
    faults = [f"{d.code}: {d.message}" for d in check(job) if d.severity is Severity.ERROR]
    if job.plan is None:
        faults.append("a value is out of its range")
    if faults:
        raise InternalError(f"the plan compiles, and shrunk it does not: {'; '.join(faults)}")


def _placed(whole: Facts, at: Arrangement) -> Found:
    """The mesh and its machines, and over how many of its ranks parameters stay sharded."""
    values: dict[str, Any] = {f"mesh.{axis}": getattr(at.mesh, axis) for axis in (*AXES, "ep")}
    values |= {"cluster.nodes": at.mesh.world // at.per_node, "cluster.devices_per_node": at.per_node}
    reshard = whole.get("apply.fsdp.reshard")
    if reshard is not None and isinstance(reshard.value, int):
        values[reshard.path] = _reshard(reshard.value, whole.results("mesh"), at.mesh)
    return Found(values)


def _reshard(ranks: int, whole: Mesh, small: Mesh) -> int:
    """One, some or all of the ranks that shard a parameter, as before."""
    if ranks == 1:
        return 1
    if ranks < whole.fsdp_degree and some_of(small) > 1:
        return some_of(small)
    return gcd(small.fsdp_degree, small.expert_fold // small.ep)


def _changes(whole: Facts, small: Facts) -> Iterator[Changed]:
    """Every value that is not the plan's, in the order of the plan; what is computed from others is among them."""
    sources = whole.block("sources").items()
    yield Changed("sources", listing(f"{name} = {source.tag}" for name, source in sources), "random sequences", DATA)
    for path in dict.fromkeys((*whole.leaves, *small.leaves)):
        was, now = _text(whole, path), _text(small, path)
        is_said = (
            path in LISTS or any(_is_below(path, part) for part in UNLISTED) or _is_out_with_more(whole, small, path)
        )
        if was != now and not is_said:
            yield Changed(path, was, now, why(path) or "")


def _is_out_with_more(whole: Facts, small: Facts, path: str) -> bool:
    """Whether a component that the value is inside of is left out as a whole."""
    above = path.rpartition(".")[0]
    return above in whole.leaves and above not in small.leaves


def _text(facts: Facts, path: str) -> str:
    leaf = facts.leaves.get(path)
    return "" if leaf is None else Fact(path, leaf.value, leaf, facts.setting(path)).text
