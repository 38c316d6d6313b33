"""`forgeplan selftest`: do layouts train on this machine what one process trains?"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import click

from forgeplan.cli.terminal import Command, has_color, width_of, write
from forgeplan.runtime.options import ExitCode

if TYPE_CHECKING:
    from forgeplan.runtime.selftest.result import Result
    from forgeplan.runtime.selftest.row import Row
    from forgeplan.runtime.selftest.run import Room

_ERASE = "\r\x1b[2K"


@click.command("selftest", cls=Command, short_help="Look whether layouts train here what one process trains.")
@click.option(
    "--device",
    type=click.Choice(["cpu", "cuda"]),
    default="cpu",
    show_default=True,
    help="Ranks are processes on the CPU, in fp64; or one on each accelerator that is visible, in fp32.",
)
@click.option("--all", "every", is_flag=True, help="Every row; without it, a few with every axis and pair of axes.")
@click.option(
    "--only", multiple=True, metavar="PATTERN", help="Rows of the whole table with this in their name; `*` is any text."
)
@click.option("--list", "lists", is_flag=True, help="Name the rows, and run none.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document at the end, for programs.")
def command(device: str, every: bool, only: tuple[str, ...], lists: bool, as_json: bool) -> int:
    """Train a tiny model for five steps in every layout, and in one process by a loop that shares nothing with it.

    Losses, gradient norms, first gradients and (in fp64) weights must be the same.
    """
    from forgeplan.runtime.selftest.report import as_json as in_json
    from forgeplan.runtime.selftest.result import Result
    from forgeplan.runtime.selftest.table import chosen

    rows = chosen(only, every)
    if lists and not as_json:
        _list(rows)
        return ExitCode.FINE
    if lists:
        write(in_json(device, [Result(row, "not_run", reason="listed only") for row in rows]))
        return ExitCode.FINE
    results = list(_run(rows, device)) if as_json else _shown(rows, _run(rows, device))
    if as_json:
        write(in_json(device, results))
    return ExitCode.FAILED if any(result.is_bad for result in results) else ExitCode.FINE


def _list(rows: list[Row]) -> None:
    from forgeplan.diagnostics.paint import painter
    from forgeplan.runtime.selftest.report import Table

    table = Table(rows, painter(has_color(sys.stdout)))
    for row in rows:
        write(table.listed(row))


def _shown(rows: list[Row], results: Iterable[Result]) -> list[Result]:
    """The same results, each printed as soon as it is there."""
    from forgeplan.diagnostics.paint import painter
    from forgeplan.runtime.selftest.report import Table, summary

    table = Table(rows, painter(has_color(sys.stdout)))
    write(table.header())
    kept = []
    for result in results:
        write(table.line(result))
        kept.append(result)
    write(f"\n{summary(kept)}")
    return kept


def _run(rows: list[Row], device: str) -> Iterator[Result]:
    """Raises UsageError at once where there is no such device; runs a row when its result is asked for."""
    from forgeplan.runtime.selftest.run import room_for

    return _results(rows, device, room_for(device))


def _results(rows: list[Row], device: str, room: Room) -> Iterator[Result]:
    from forgeplan.runtime.selftest.bench import Bench
    from forgeplan.runtime.selftest.run import run_row

    with Bench(device) as bench:
        for number, row in enumerate(rows, start=1):
            _say(f"{number} of {len(rows)}: {row.name} …")
            result = run_row(row if device == "cpu" else row.on_accelerators(), bench, room)
            _say("")
            yield result


def _say(text: str) -> None:
    """What goes on now, on a terminal, where the next line replaces it."""
    if sys.stderr.isatty():
        write(_ERASE + text[: width_of(sys.stderr) - 1], err=True, end="")
