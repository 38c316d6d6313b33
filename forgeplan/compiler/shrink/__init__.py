"""Which few small plans stand for a plan in a proof?

Small enough to be trained twice on a machine with two cores, and with every feature, transform and axis. What that
cannot have is named.
"""

from __future__ import annotations

from forgeplan.compiler.checking import facts_of
from forgeplan.compiler.emission import emit
from forgeplan.compiler.shrink.meshes import MOST_RANKS, Arrangement, Options, covering
from forgeplan.compiler.shrink.replaced import left_out
from forgeplan.compiler.shrink.trial import shrunk
from forgeplan.plan.proof import LeftOut, Proof
from forgeplan.spec.job import Job


def shrink(job: Job, most_ranks: int = MOST_RANKS, limit: str = "") -> Proof:
    """The trials of a job that passed every check, of at most so many processes; `limit` says why there are no more."""
    most_ranks = max(1, min(most_ranks, MOST_RANKS))
    facts = facts_of(job)
    whole = Arrangement(facts.results("mesh"), facts["cluster.devices_per_node"].value)
    arrangements, uncovered = covering(whole, Options.of(facts), most_ranks)
    found = [shrunk(job, at) for at in arrangements]
    kept = frozenset[str]().union(*(one.kept for one in found))
    lost = frozenset[str]().union(*(one.lost for one in found)) - kept
    too_many = f"it takes more than {most_ranks} ranks" + (f": {limit}" if most_ranks < MOST_RANKS else "")
    return Proof(
        plan=emit(job),
        trials=tuple(one.trial for one in found),
        replaced=tuple(dict.fromkeys(change for one in found for change in one.replaced)),
        left_out=(
            *left_out(facts),
            *(LeftOut(name, too_many) for name in uncovered),
            *(LeftOut(name, "no small model has it beside all else") for name in sorted(lost)),
        ),
    )
