"""`forgeplan graph`: draw what a plan is made of."""

from __future__ import annotations

import click

from forgeplan.cli.candidates import plan_files
from forgeplan.cli.plan_file import Choice, choosing, chosen
from forgeplan.cli.terminal import Command, write


@click.command("graph", cls=Command, short_help="Draw a plan as DOT or Mermaid.")
@click.argument("file", shell_complete=plan_files)
@choosing
@click.option(
    "--format",
    type=click.Choice(["dot", "mermaid"]),
    default="dot",
    show_default=True,
    help="For Graphviz, or for pages that draw Mermaid.",
)
def command(file: str, plan: str | None, profile: str | None, overrides: tuple[str, ...], format: str) -> None:
    """Draw model, data, mesh, program and services of a plan FILE, as in `forgeplan graph FILE | dot -Tsvg`."""
    found = chosen(Choice(file, plan, profile, overrides))
    found.refuse_errors()
    from forgeplan.compiler import graph_of
    from forgeplan.compiler.draw import to_dot, to_mermaid

    write((to_dot if format == "dot" else to_mermaid)(graph_of(found.job)), end="")
