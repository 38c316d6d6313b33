"""`forgeplan schema`: what can a plan say, for programs and for people?"""

from __future__ import annotations

import click

from forgeplan.cli.files import write_bytes
from forgeplan.cli.terminal import Command, write


@click.command("schema", cls=Command, short_help="The schema of plans, as JSON Schema or as a page.")
@click.option(
    "--format",
    type=click.Choice(["json", "markdown", "html"]),
    default="json",
    show_default=True,
    help="JSON Schema of the job in a compiled plan, or the reference of every field as a page.",
)
@click.option("-o", "--output", metavar="FILE", help="Where to write it.  [default: standard output]")
def command(format: str, output: str | None) -> None:
    """Print every record, component and field of the plan language: type, unit, range, default, class of change."""
    from forgeplan.reference.pages import page

    text = page(format)
    if output is None or output == "-":
        write(text, end="")
    else:
        write_bytes(output, text.encode())
