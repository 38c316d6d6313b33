"""`forgeplan diff`: what does another plan mean?"""

from __future__ import annotations

import json
import sys

import click

from forgeplan.cli.candidates import plans_and_compiled
from forgeplan.cli.compiled import compiled, side
from forgeplan.cli.terminal import Command, width_of, write
from forgeplan.runtime.options import ExitCode


@click.command("diff", cls=Command, short_help="How two plans differ, and whether a run goes on across it.")
@click.argument("a", shell_complete=plans_and_compiled)
@click.argument("b", shell_complete=plans_and_compiled)
@click.option("--json", "as_json", is_flag=True, help="For programs, with exact values.")
def command(a: str, b: str, as_json: bool) -> int:
    """Compare what two plans train, and say whether a run of B goes on from a checkpoint of A.

    \b
    Each is one of
      FILE.forge[:PLAN][@PROFILE]   a plan file; PLAN if it has several
      FILE.json                     a compiled plan
      FOLDER                        a run directory, or a checkpoint in it
    """
    from forgeplan.plan.diff import diff, to_json

    found = diff(*(compiled(side(text, as_json)) for text in (a, b)))
    if as_json:
        write(json.dumps(to_json(found), indent=2, ensure_ascii=False))
    else:
        from forgeplan.compiler.explain.difference import explain_diff

        write(explain_diff(found, (a, b), width_of(sys.stdout)), end="")
    return ExitCode.FINE if found.is_equal else ExitCode.DIFFERENCES
