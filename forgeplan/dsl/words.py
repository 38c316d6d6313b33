"""Which words does the schema use for fields and for kinds of nodes at the top of a plan?"""

from __future__ import annotations

from functools import cache


@cache
def node_kinds() -> frozenset[str]:
    """Words that declare a named node: `eval held_out { … }`."""
    from forgeplan.spec.plan import Plan
    from forgeplan.spec.setting import settings_of
    from forgeplan.spec.types import NodesOf

    return frozenset(name for name, setting in settings_of(Plan).items() if isinstance(setting.type, NodesOf))


@cache
def plan_fields() -> frozenset[str]:
    """Words that are set with `=`."""
    from forgeplan.spec.plan import Plan
    from forgeplan.spec.setting import settings_of

    return frozenset(settings_of(Plan)) - node_kinds()
