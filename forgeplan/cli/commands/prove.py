"""`forgeplan prove`: does this plan train what one process trains?"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from forgeplan.cli.candidates import plan_files
from forgeplan.cli.plan_file import Choice, choosing, chosen
from forgeplan.cli.terminal import Command, has_color, width_of, write
from forgeplan.runtime.options import ExitCode, RunOptions

if TYPE_CHECKING:
    from forgeplan.plan.proof import Proof, Trial


@click.command("prove", cls=Command, short_help="Prove that a plan trains what one process trains.")
@click.argument("file", shell_complete=plan_files)
@choosing
@click.option("--json", "as_json", is_flag=True, help="Print the certificate, for programs.")
def command(file: str, plan: str | None, profile: str | None, overrides: tuple[str, ...], as_json: bool) -> int:
    """Shrink a plan, with every feature and axis that it has, and train that on ranks and in one process.

    Both must come to the same losses, gradients and weights. The certificate is left in the plan's run directory, where
    `forgeplan run` looks for it.
    """
    from forgeplan.compiler.shrink import shrink
    from forgeplan.runtime import certificate
    from forgeplan.runtime.dry_run import directory_of

    choice = Choice(file, plan, profile, overrides, as_json)
    found = chosen(choice)
    found.refuse_errors()
    # Only now, as torch takes seconds.
    from forgeplan.runtime.selftest.run import room_for

    room = room_for("cpu")
    proof = shrink(found.job, room.num_ranks, room.limit)
    document = _certificate(proof, as_json)
    target = directory_of(proof.plan, RunOptions(project=str(choice.project))).certificate
    certificate.write(target, document)
    write(json.dumps(document, indent=2, ensure_ascii=False) if as_json else f"certificate {target}")
    return ExitCode.FINE if document["verdict"] == certificate.PROVEN else ExitCode.FAILED


def _certificate(proof: Proof, as_json: bool) -> dict[str, Any]:
    """Make all trials; a person reads how they go."""
    from forgeplan.diagnostics.paint import painter
    from forgeplan.runtime.proof_page import Page
    from forgeplan.runtime.prove import certificate, tried
    from forgeplan.runtime.selftest.bench import Bench

    page = Page(proof, width_of(sys.stdout), painter(has_color(sys.stdout)))

    def say(text: str) -> None:
        if not as_json:
            write(text)

    def begins(trial: Trial) -> None:
        say(f"\n{page.trial(proof.trials.index(trial) + 1, trial)}")

    say(page.opening())
    results = []
    with Bench() as bench:
        for result in tried(proof, bench, begins):
            say(page.result(result))
            results.append(result)
    document = certificate(proof, results)
    say(f"\n{page.closing(document)}")
    return document
