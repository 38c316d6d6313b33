"""`forgeplan explain`: what does a plan do, where does a value come from, and what does a code mean?"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from forgeplan.cli.candidates import files_and_codes, paths
from forgeplan.cli.files import read_bytes
from forgeplan.cli.plan_file import Choice, Chosen, choosing, chosen
from forgeplan.cli.terminal import Command, has_color, width_of, write
from forgeplan.diagnostics.refusal import UsageError


@click.command("explain", cls=Command, short_help="What a plan does, where a value comes from, what a code means.")
@click.argument("what", metavar="FILE|CODE", shell_complete=files_and_codes)
@click.argument("path", required=False, shell_complete=paths)
@choosing
@click.option("--all", "every", is_flag=True, help="Every field with its value and who set it.")
def command(
    what: str, path: str | None, plan: str | None, profile: str | None, overrides: tuple[str, ...], every: bool
) -> None:
    """Show what a plan does, one value of it, or the page of a diagnostic's code.

    \b
    forgeplan explain FILE                what the plan does, on one page
    forgeplan explain FILE optimizer.lr   one value, what it may be, and every layer that set it
    forgeplan explain FILE --all          every value
    forgeplan explain FP0412              the rule behind a code, with a failing and a passing plan
    """
    if path is not None and every:
        raise UsageError(f"--all shows every value, and {path!r} asks for one: give one of the two")
    if not Path(what).exists() and _is_code(what):
        _code(what)
    elif what.endswith(".json"):
        _compiled(what, path, every or bool(plan or profile or overrides))
    else:
        _file(Choice(what, plan, profile, overrides), path, every)


def _is_code(text: str) -> bool:
    from forgeplan.diagnostics.pages import looks_like_code, similar

    return looks_like_code(text) or ("." not in text and "/" not in text and bool(similar(text)))


def _code(code: str) -> None:
    from forgeplan.diagnostics.pages import page, render, similar

    found = page(code)
    if found is None:
        near = ", ".join(similar(code))
        raise UsageError(f"there is no code {code}" + (f"; there is {near}" if near else ""))
    write(render(found, width_of(sys.stdout), has_color(sys.stdout)))


def _compiled(file: str, path: str | None, has_options: bool) -> None:
    from forgeplan.compiler.explain import explain
    from forgeplan.plan.verify import read

    if path is not None or has_options:
        raise UsageError(f"{file} is compiled, and shown as a whole\n  help: ask for values of its plan file")
    write(explain(read(read_bytes(file)), width_of(sys.stdout)), end="")


def _file(choice: Choice, path: str | None, every: bool) -> None:
    found = chosen(choice)
    width = width_of(sys.stdout)
    if path is not None:
        write(_value(found, path, width), end="")
        return
    found.refuse_errors()
    if every:
        from forgeplan.compiler.explain import explain_all

        write(explain_all(found.job, found.analysis.sources, width), end="")
    else:
        from forgeplan.compiler.explain import explain

        write(explain(found.compiled(), width), end="")


def _value(found: Chosen, path: str, width: int) -> str:
    """A value can be asked for in a plan with faults elsewhere; they are shown where they may have hidden it."""
    from forgeplan.compiler.explain import explain_path

    try:
        return explain_path(found.job, path, found.analysis.sources, width)
    except UsageError:
        found.refuse_errors()
        raise
