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
    from forgeplan.analysis import Analysis
    from forgeplan.importer.convert import Imported

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
    from forgeplan.importer.convert import convert
    from forgeplan.importer.rules import Options

    devices_of(cluster)
    found = convert(read_text(Path(file)), file, Options(nodes, devices_per_node, cluster), format)
    if found.text is None:
        _report(found, as_json, None, None, err=True)
        return ExitCode.FAILED
    target = output or f"{found.report.plan}.forge"
    analysis = _written(found.text, target, may_replace=output is not None)
    _report(found, as_json, analysis, target, err=target == "-")
    if analysis.errors:
        show(analysis.errors, analysis.sources, err=True)
        return ExitCode.FAILED
    return ExitCode.FINE


def _written(text: str, target: str, may_replace: bool) -> Analysis:
    """Check the plan, and write it: also with errors, as these are the source's own and are mended in the plan."""
    from forgeplan.analysis import analyse

    if target == "-":
        write(text, end="")
        return analyse("<standard output>", text=text)
    if not may_replace and Path(target).exists():
        raise UsageError(f"{target} exists, and is left as it is\n  help: `-o {target}` writes over it")
    write_bytes(target, text.encode())
    return analyse(target)


def _report(found: Imported, as_json: bool, analysis: Analysis | None, target: str | None, *, err: bool) -> None:
    from forgeplan.importer.report import render, to_json

    facts = _facts(analysis) if analysis is not None else None
    if as_json:
        report = {"written": None if target == "-" else target, **to_json(found.report), "facts": facts}
        write(json.dumps(report, indent=2, ensure_ascii=False), err=err and target == "-")
        return
    stream = sys.stderr if err else sys.stdout
    head = f"{found.report.file}, a configuration of {found.report.format}"
    if facts is not None:
        where = "standard output" if target == "-" else target
        head += (
            f": {where} has plan {found.report.plan}, {facts['params']:,} parameters on {facts['devices']:,} devices"
        )
    write(f"{head}\n\n{render(found.report, width_of(stream))}", err=err)


def _facts(analysis: Analysis) -> dict[str, int] | None:
    """Parameters, devices, and tokens of a step of the plan that was made; None where it has errors."""
    if analysis.errors or not analysis.jobs:
        return None
    plan = analysis.jobs[0].plan
    if plan is None:
        return None
    mesh, batch = plan.mesh, plan.batch
    ranks = mesh.dp_replicate * mesh.dp_shard
    return {
        "params": sum(parameter.numel for parameter in plan.model.parameters()),
        "devices": plan.cluster.nodes * plan.cluster.devices_per_node,
        "tokens_per_step": batch.accumulation * batch.micro * batch.length * ranks,
    }
