"""Does everything that is written change something?"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from forgeplan.compiler.changes import Change
from forgeplan.compiler.facts import Fact, Facts
from forgeplan.compiler.idle_options import idle_options
from forgeplan.compiler.invariants.registry import Finding, lint
from forgeplan.compiler.wording import plan_text, plural
from forgeplan.diagnostics.diagnostic import Label
from forgeplan.spec.quantity import SECONDS, STEPS, TOKENS

AXES = ("pp", "tp", "cp", "ep")
"""Axes that a transform of the same name works on."""


@lint("setting-without-effect", "a written setting has a reader")
def setting_without_effect(facts: Facts) -> Iterator[Finding]:
    yield from _idle_transforms(facts)
    yield from _idle_modules(facts)
    for fact, others, why in (*_idle(facts), *_idle_of_experts(facts), *idle_options(facts)):
        if fact.written:
            yield setting_without_effect.at(
                f"{fact.equation} has no effect: {why}",
                fact,
                *others,
                help=("delete it",),
                changes=(Change(fact.path, None),),
            )


def _idle_transforms(facts: Facts) -> Iterator[Finding]:
    """Transforms whose axis has one rank, unless a profile, a sweep or the command line says so for once."""
    for axis in AXES:
        item, degree = facts.leaves.get(f"apply.{axis}"), facts[f"mesh.{axis}"]
        by = degree.origin.layer if degree.origin else ""
        if item is not None and degree.value == 1 and by.startswith(("plan ", "schema")):
            yield setting_without_effect.at(
                f"`{axis}` in apply has no effect: {degree.equation}",
                Label(facts.place(f"apply.{axis}", "apply"), "divides nothing"),
                degree,
                help=(f"delete it, or set mesh.{axis} above 1",),
                changes=(Change(f"apply.{axis}", None),),
            )


def _idle_modules(facts: Facts) -> Iterator[Finding]:
    """Modules that predict further than a sequence is long: module k has length - k labels."""
    modules, length = facts["model.mtp"], facts["batch.length"]
    if modules.written and modules.value >= length.value:
        most = length.value - 1
        yield setting_without_effect.at(
            f"{modules.equation}, and a sequence of {length.text} has labels for {plural(most, 'module')} at most; "
            "the others have no effect but to count in the mean of `loss.mtp`",
            modules,
            length,
            help=(f"at most {most}, or longer sequences",),
        )


def _idle(facts: Facts) -> Iterator[tuple[Fact, tuple[Fact, ...], str]]:
    """Settings that nothing reads under the resolved plan, with the values that make them idle and the reason."""
    window, length = facts["model.window"], facts["batch.length"]
    if window.value is not None and window.value >= length.value:
        yield window, (length,), f"a sequence of {length.text} is inside the window as a whole"
    reshard, shard, cp = facts.get("apply.fsdp.reshard"), facts["mesh.dp_shard"], facts["mesh.cp"]
    mesh, moe = facts.results("mesh"), facts.block("model").moe
    is_whole = mesh.fsdp_degree == 1 and (moe is None or mesh.expert_fold == mesh.ep)
    # A number of more ranks than there are is an error.
    if reshard is not None and is_whole and reshard.value in ("always", "never"):
        yield reshard, (shard, cp), "parameters are not sharded, so that none are gathered"
    offload, replicas = facts.get("apply.fsdp.offload"), facts["mesh.dp_replicate"]
    if offload is not None and offload.value and is_whole and replicas.value == 1:
        yield offload, (shard, cp, replicas), "fsdp only applies number formats here, and moves nothing"
    kv, heads, tp = facts.get("apply.tp.kv"), facts["model.kv_heads"], facts["mesh.tp"]
    if kv is not None and kv.value == "replicate" and tp.value > 1 and heads.value % tp.value == 0:
        yield kv, (heads, tp), f"{plural(heads.value, 'key and value head')} divide over {plural(tp.value, 'tp rank')}"
    decay, embeddings = facts.get("optimizer.weight_decay"), facts.get("optimizer.decay_embeddings")
    if decay is not None and embeddings is not None and decay.value == 0 and embeddings.value:
        yield embeddings, (decay,), "nothing decays"
    endless = [s for s in facts.block("sources").values() if s.tag == "synthetic" and s.document is None]
    if facts["batch.pack"].value and len(endless) == len(facts.block("sources")):
        yield facts["batch.pack"], (), "the sources have no documents to keep apart"


def _idle_of_experts(facts: Facts) -> Iterator[tuple[Fact, tuple[Fact, ...], str]]:
    """The same, about experts and the modules that predict further."""
    weight, modules = facts.get("loss.mtp"), facts["model.mtp"]
    if weight is not None and modules.value == 0:
        yield weight, (modules,), "the model has no modules of multi-token prediction"
    groups, limit = facts.get("model.moe.groups"), facts.get("model.moe.group_limit")
    if groups is not None and limit is not None and groups.value == limit.value:
        # A limit that is not written follows the groups.
        idle, other = (limit, groups) if limit.written or groups.value == 1 else (groups, limit)
        yield idle, (other,), "a token may choose from every group"
    rate, schedule = facts.get("model.moe.router.rate"), facts.get("model.moe.router.rate_schedule")
    if rate is not None and schedule is not None and rate.value == 0 and schedule.value != "constant":
        yield schedule, (rate,), "the balancing bias never changes"
    experts, top_k, capacity = (facts.get(f"model.moe.{name}") for name in ("experts", "top_k", "capacity"))
    if experts is None or top_k is None or capacity is None:
        return
    if capacity.value is not None and capacity.value * top_k.value >= experts.value:
        most = plan_text(Fraction(experts.value, top_k.value))
        yield capacity, (experts, top_k), f"an expert gets a token once at most, which is {most} times its even share"
    for name in ("balance", "sequence_balance"):
        loss = facts["model.moe." + name]
        if loss.value and top_k.value == experts.value:
            yield loss, (top_k, experts), "every token goes to all experts, so that no load can change"


@lint("never-fires", "what is to happen again and again happens before the run ends")
def never_fires(facts: Facts) -> Iterator[Finding]:
    end = facts.get("budget.steps")
    wall = facts.get("budget.wall")
    tokens = facts["batch.tokens"].value
    evals = [f"eval.{name}.every" for name in facts.block("eval")]
    for path in ("checkpoint.every", "metrics.every", *evals):
        fact = facts.get(path)
        if fact is None or not fact.written or fact.value is None:
            continue
        amount = fact.value if isinstance(fact.value, int) else fact.value.amount
        dimension = STEPS if isinstance(fact.value, int) else fact.value.dimension
        if dimension == SECONDS and wall is not None and wall.value is not None and amount > wall.value:
            yield never_fires.at(f"{fact.equation} lies beyond the {wall.text} of the run", fact, wall)
        if dimension not in (STEPS, TOKENS) or end is None or end.value is None:
            continue
        first = -(-Fraction(amount) // (tokens if dimension == TOKENS else 1))
        if first > end.value:
            yield never_fires.at(
                f"{fact.equation} would first be at step {int(first):,}, and the run has "
                f"{plural(end.value, 'step')}; only the end of the run does it",
                fact,
                end if end.written else facts.get("budget.tokens"),
                changes=() if path.startswith("eval.") else (Change(path, None),),
            )
