"""`forgeplan test`: do the `test` blocks of plan files hold?"""

from __future__ import annotations

import click

from forgeplan.cli.candidates import plan_files
from forgeplan.cli.plan_file import Choice, has_errors
from forgeplan.cli.terminal import Command, show, write
from forgeplan.runtime.options import ExitCode


@click.command("test", cls=Command, short_help="Run the `test` blocks of plan files.")
@click.argument("files", nargs=-1, required=True, metavar="FILE...", shell_complete=plan_files)
def command(files: tuple[str, ...]) -> int:
    """Run the `test` blocks of each FILE: every `expect`, and every `expect error`."""
    results = [_test(file) for file in files]
    num_passed, num_failed = (sum(counts) for counts in zip(*results, strict=True))
    write(f"{num_passed} passed, {num_failed} failed")
    return ExitCode.FAILED if num_failed else ExitCode.FINE


def _test(file: str) -> tuple[int, int]:
    """How many tests of a file passed and failed. A file with errors counts as one that failed."""
    from forgeplan.analysis import run_tests

    analysis = Choice(file).analysed()
    if has_errors(analysis.diagnostics):
        show(analysis.diagnostics, analysis.sources, after="\n")
        write(f"FAILED {file}: its tests are not run, as it has errors")
        return 0, 1
    results = run_tests(file)
    for result in results:
        write(f"{'ok    ' if result.passed else 'FAILED'} {file}: {result.title} ({result.plan})")
        show(result.diagnostics, analysis.sources, after="\n")
    if not results:
        write(f"       {file}: no test")
    return sum(r.passed for r in results), sum(not r.passed for r in results)
