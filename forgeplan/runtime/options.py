"""What may a person say about a run that is not in its plan?"""

from __future__ import annotations

import json

from attrs import asdict, frozen


@frozen
class RunOptions:
    """Command-line options of `forgeplan run`; none of them changes what is trained.

    `resume` overrides the plan's `checkpoint.resume`: "auto", "none" or a step. `take_over` accepts a lock that another
    machine left. `dry_run` says what would happen and trains nothing. `project` is the folder that relative paths of
    the plan start from. `prove` is the command that proves this plan, for those who have no certificate.
    """

    resume: str | int | None = None
    take_over: bool = False
    dry_run: bool = False
    project: str = "."
    prove: str = "`forgeplan prove` tries it"

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> RunOptions:
        return cls(**json.loads(text))


class ExitCode:
    """What a command's exit code says."""

    FINE = 0
    FAILED = 1
    USAGE = 2
    INTERNAL = 3
    DIFFERENCES = 10
    """There are differences, where the question was whether there are any."""
    STOPPED = 75
    """Stopped on a signal after saving: run it again."""
    ABORTED = 130
    """A second signal: ended at once; the last commit stands."""
