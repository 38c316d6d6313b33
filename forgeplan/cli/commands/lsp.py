"""`forgeplan lsp`: serve an editor."""

from __future__ import annotations

import gc
import logging

import click

from forgeplan.cli.terminal import Command
from forgeplan.diagnostics.refusal import UsageError
from forgeplan.runtime.options import ExitCode


@click.command("lsp", cls=Command, short_help="Serve an editor: the language server.")
@click.option("--log", "level", type=click.Choice(["error", "info", "debug"]), default="error", show_default=True,
              help="What is written to standard error.")  # fmt: skip
def command(level: str) -> int:
    """Speak the Language Server Protocol on standard input and output; an editor starts this."""
    try:
        from forgeplan.lsp.server import make_server
    except ModuleNotFoundError as missing:
        if missing.name not in ("pygls", "lsprotocol"):
            raise
        raise UsageError(
            f"the language server needs {missing.name}\n  help: pip install 'forgeplan-torch[lsp]'"
        ) from None
    from forgeplan.cli.main import version

    logging.basicConfig(level=level.upper(), format="%(levelname)s %(name)s: %(message)s")
    server = make_server(version())
    # What is loaded by now stays, and what analyses leave is collected while nobody types (see lsp/analyses.py).
    gc.freeze()
    gc.disable()
    server.start_io()
    return ExitCode.FINE
