"""`forgeplan doctor`: is this machine fit to train?"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from forgeplan.cli.terminal import Command, has_color, write
from forgeplan.runtime.options import ExitCode


@click.command("doctor", cls=Command, short_help="Look whether this machine is fit to train.")
def command() -> int:
    """Look at versions, devices, network and disk, with one line to follow for everything that is wrong."""
    from forgeplan.diagnostics.paint import painter
    from forgeplan.runtime.doctor import examine

    paint = painter(has_color(sys.stdout))
    num_bad = 0
    for finding in examine(Path.cwd()):
        sign = "ok   " if finding.good else paint("wrong", "error")
        write(f"{sign}  {finding.name:<9}  {finding.text}")
        if finding.fix:
            write(f"{'':18}{paint('→', 'code')} {finding.fix}")
        num_bad += not finding.good
    return ExitCode.FAILED if num_bad else ExitCode.FINE
