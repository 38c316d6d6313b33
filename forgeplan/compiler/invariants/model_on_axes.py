"""Can this model be divided over these axes at all?"""

from __future__ import annotations

from collections.abc import Iterator

from forgeplan.compiler.facts import Facts
from forgeplan.compiler.invariants.registry import Finding, invariant, legal, rewritten
from forgeplan.compiler.wording import count, listing, plural


@invariant("FP0425", "a pipeline has no layers with experts")
def no_experts_in_a_pipeline(facts: Facts) -> Iterator[Finding]:
    pp, experts = facts["mesh.pp"], facts.get("model.moe.experts")
    if pp.value == 1 or experts is None:
        return
    fitting = [f"mesh = {{ {listing(f'{axis} = {n}' for axis, n in mesh.items())} }}" for mesh in _meshes(facts)]
    yield no_experts_in_a_pipeline.at(
        f"a pipeline over {plural(pp.value, 'rank')} with experts is not supported by this executor: stages hand on "
        "activations alone, and the losses and loads of routers are of all layers together",
        pp,
        experts,
        legal=(legal(facts, "mesh.pp", [1]),),
        help=(f"ranks of pp can be those of another axis: {listing(fitting, ' or ')}",) if fitting else (),
    )


def _meshes(facts: Facts) -> Iterator[dict[str, int]]:
    """The nearest meshes without a pipeline: its ranks are given to one other axis, and to experts where they fit."""
    degrees = {axis: facts[f"mesh.{axis}"] for axis in ("pp", "dp_shard", "tp", "cp", "dp_replicate", "ep")}
    pp, ep = degrees["pp"].value, degrees["ep"].value
    for axis in ("dp_shard", "tp", "cp", "dp_replicate"):
        grown = {"pp": 1} if degrees[axis].is_auto else {"pp": 1, axis: degrees[axis].value * pp}
        candidates = ({**grown, "ep": ep * pp}, grown)
        fitting = facts.legal([{f"mesh.{name}": n for name, n in candidate.items()} for candidate in candidates])
        for mesh in fitting[:1]:
            yield {path.removeprefix("mesh."): degree for path, degree in mesh.items()}


@invariant("FP0427", "a pipeline has an embedding and a head of their own")
def no_tied_head_in_a_pipeline(facts: Facts) -> Iterator[Finding]:
    pp, tie = facts["mesh.pp"], facts["model.tie"]
    if pp.value == 1 or not tie.value:
        return
    repairs = (legal(facts, "model.tie", [False]), legal(facts, "mesh.pp", [1]))
    added = facts["model.pad_vocab"].value * facts["model.dim"].value
    fixes = (
        *(rewritten(tie, "false", "untie the head") if repairs[0].values else ()),
        *(rewritten(pp, "1", "set mesh.pp to 1") if repairs[1].values else ()),
    )
    yield no_tied_head_in_a_pipeline.at(
        f"a pipeline with a tied embedding: the one tensor of embedding and head would live on the first and the last "
        f"of {plural(pp.value, 'rank')}, and become two",
        tie,
        pp,
        legal=repairs,
        notes=(f"untied, the model has {count(added)} parameters more",),
        fixes=fixes,
    )


@invariant("FP0428", "modules that predict further tokens have whole sequences and all stages on their ranks")
def later_labels_are_at_hand(facts: Facts) -> Iterator[Finding]:
    mtp = facts["model.mtp"]
    axes = [axis for name in ("pp", "cp") if (axis := facts[f"mesh.{name}"]).value > 1]
    if not mtp.value or not axes:
        return
    yield later_labels_are_at_hand.at(
        f"{mtp.equation} with {listing((axis.equation for axis in axes), ' and ')} is not supported by this executor: "
        "embeddings and labels of later tokens are on other ranks",
        mtp,
        *axes,
        legal=(legal(facts, "model.mtp", [0]), *(legal(facts, axis.path, [1]) for axis in axes)),
    )
