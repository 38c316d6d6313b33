"""`forgeplan new`: a plan file to begin with."""

from __future__ import annotations

from pathlib import Path

import click

from forgeplan.cli.terminal import Command, write
from forgeplan.diagnostics.refusal import UsageError

STARTERS = {"quickstart": "quickstart", "pretrain": "dense_7b", "debug": "debug"}
"""What one can begin from → the plan of `plans/` that it is."""


@click.command("new", cls=Command, short_help="Write a plan file to begin with.")
@click.argument("path", required=False)
@click.option(
    "--from",
    "starter",
    type=click.Choice(list(STARTERS)),
    default="quickstart",
    show_default=True,
    help="A small model of Python source, a 7B model on H200s, or the smallest thing that trains.",
)
def command(path: str | None, starter: str) -> None:
    """Write a commented plan that compiles to PATH (a file, or a folder for it), and never over another file."""
    from forgeplan.resources import resource

    name = f"{STARTERS[starter]}.forge"
    target = Path(path or name)
    if target.is_dir():
        target /= name
    text = resource(f"plans/{name}").read_bytes()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("xb") as file:
            file.write(text)
    except FileExistsError:
        raise UsageError(f"{target} exists, and is left as it is\n  help: name another file") from None
    except OSError as reason:
        raise UsageError(f"{target} cannot be written: {(reason.strerror or '').lower()}") from None
    write(f"{target} is written")
    write(f"  forgeplan explain {target}   what it does")
    write(f"  forgeplan run {target}       train it")
