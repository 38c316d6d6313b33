"""Which commands stand above a plan?"""

from __future__ import annotations

from lsprotocol import types as lsp

from forgeplan.dsl import syntax
from forgeplan.lsp.snapshot import Snapshot

COMMANDS = {"forgeplan.compile": "compile", "forgeplan.explain": "explain", "forgeplan.run": "run"}
"""The first two are executed by the server and give a text; a run needs a terminal, which is the client's."""


def code_lenses(snapshot: Snapshot) -> list[lsp.CodeLens]:
    """For every plan that can run; the arguments are the document and the plan's name."""
    plans = [item for item in snapshot.parsed.file.items if isinstance(item, syntax.Plan) and not item.partial]
    return [
        lsp.CodeLens(
            snapshot.range(plan.name.span),
            lsp.Command(title, name, arguments=[snapshot.uri, plan.name.text]),
        )
        for plan in plans
        for name, title in COMMANDS.items()
    ]
