"""`forgeplan import`: a plan from another program's configuration."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from forgeplan.cli.files import write_bytes
from forgeplan.cli.terminal import Command, show, width_of, write
from forgeplan.diagnostics.refusal import UsageError
from forgeplan.runtime.options import ExitCode

if TYPE_CHECKING:
    from forgeplan.importing import Checked

_FORMATS = ("kempnerforge", "torchtitan", "huggingface")
_COUNT = click.IntRange(1, 1 << 20)


@click.command("import", cls=Command, short_help="Make a plan of another program's configuration.")
@click.argument("file")
@click.option(
    "-o", "--output", metavar="OUT", help="Where to write the plan; `-` is standard output.  [default: NAME.forge]"
)
@click.option("--from", "format", type=click.Choice(_FORMATS), help="Whose file it is, where its keys do not tell.")
@click.option(
    "--cluster", metavar="NAME", default="h100_node", show_default=True, help="The machines, a name of std:clusters."
)
@click.option("--nodes", type=_COUNT, metavar="N", help="How many machines, where the file does not say it.")
@click.option("--devices-per-node", type=_COUNT, metavar="N", help="Devices of one machine.")
@click.option("--json", "as_json", is_flag=True, help="The report as JSON.")
def command(
    file: str,
    output: str | None,
    format: str | None,
    cluster: str,
    nodes: int | None,
    devices_per_node: int | None,
    as_json: bool,
) -> int:
    """Read a configuration FILE of KempnerForge or torchtitan (TOML), or a HuggingFace config.json, and write a plan.

    The report says of every key of the file whether it is taken, changed, without an equivalent or not needed, and
    what the plan assumes.
    """
    from forgeplan.dsl.load import read_text
    from forgeplan.importer.cluster import devices_of
    from forgeplan.importer.rules import Options
    from forgeplan.importing import import_plan

    devices_of(cluster)
    found = import_plan(read_text(Path(file)), file, Options(nodes, devices_per_node, cluster), format)
    if found.analysis is None:
        _report(found, as_json, None)
        return ExitCode.FAILED
    target = output or f"{found.imported.report.plan}.forge"
    _write(found.imported.text or "", target, may_replace=output is not None)
    _report(found, as_json, target)
    if not found.analysis.errors:
        return ExitCode.FINE
    after = f"\n\n{target} is written: what it takes over does not fit together, and is yours to mend"
    show(found.analysis.errors, found.analysis.sources, err=True, after=after)
    return ExitCode.FAILED


def _write(text: str, target: str, may_replace: bool) -> None:
    """The plan, also with errors: they are the source's own, and are mended in the plan."""
    if target == "-":
        write(text, end="")
    elif not may_replace and Path(target).exists():
        raise UsageError(f"{target} exists, and is left as it is\n  help: `-o {target}` writes over it")
    else:
        write_bytes(target, text.encode())


def _report(found: Checked, as_json: bool, target: str | None) -> None:
    """On standard output; on standard error where the plan is on the other, or is none."""
    from forgeplan.importer.report import FORMAT_VERSION, render, to_json

    report, facts, err = found.imported.report, found.facts, target == "-"
    if as_json:
        whole = {
            "format_version": FORMAT_VERSION,
            "written": None if err else target,
            **to_json(report),
            "facts": facts,
        }
        write(json.dumps(whole, indent=2, ensure_ascii=False), err=err)
        return
    err = err or target is None
    head = f"{report.file}, a configuration of {report.format}"
    if facts is not None:
        where = "standard output" if target == "-" else target
        head += f"\n{where} has plan {report.plan}: {facts['params']:,} parameters on {facts['devices']:,} devices,"
        head += f" {facts['tokens_per_step']:,} tokens a step"
    write(f"{head}\n\n{render(report, width_of(sys.stderr if err else sys.stdout))}", err=err)
