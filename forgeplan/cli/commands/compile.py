"""`forgeplan compile`: what does a plan file become?"""

from __future__ import annotations

import json

import click

from forgeplan.cli.candidates import plan_files
from forgeplan.cli.files import write_bytes
from forgeplan.cli.plan_file import Choice, Chosen, choosing, chosen
from forgeplan.cli.terminal import Command, write
from forgeplan.runtime.options import ExitCode


@click.command("compile", cls=Command, short_help="Check a plan file and write its execution plan.")
@click.argument("file", shell_complete=plan_files)
@choosing
@click.option(
    "-o", "--output", metavar="FILE", help="Where to write it; `-` is standard output.  [default: NAME.plan.json]"
)
@click.option("--json", "as_json", is_flag=True, help="Say what was written, or what is wrong, as JSON.")
def command(
    file: str, plan: str | None, profile: str | None, overrides: tuple[str, ...], output: str | None, as_json: bool
) -> int:
    """Check a plan FILE and write its execution plan, which `forgeplan run` can run anywhere."""
    found = chosen(Choice(file, plan, profile, overrides, as_json))
    found.refuse_errors()
    return _write(found, output, as_json)


def _write(found: Chosen, output: str | None, as_json: bool) -> int:
    from forgeplan.plan.codec import dumps

    compiled = found.compiled()
    data = dumps(compiled)
    if output == "-":
        write(data.decode(), end="")
        return ExitCode.FINE
    target = output or f"{compiled.name.replace('/', '-')}.plan.json"
    write_bytes(target, data)
    if as_json:
        facts = {"written": target, "name": compiled.name, "meaning": compiled.meaning, "file": compiled.file}
        write(json.dumps(facts, indent=2, ensure_ascii=False))
    else:
        write(f"{target}: plan {compiled.name}, hash {compiled.meaning[:12]}, {_size(compiled.mesh.world)}")
    return ExitCode.FINE


def _size(world: int) -> str:
    return f"for {world:,} process{'es' * (world > 1)}"
