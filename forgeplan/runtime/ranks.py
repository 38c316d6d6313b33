"""How do the processes of a run agree on small things?"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from attrs import frozen
from torch import distributed


@frozen
class Ranks:
    """This process among the processes of the run. Every method is collective; values travel as JSON."""

    rank: int = 0
    world: int = 1

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def from_first(self, decide: Callable[[], Any]) -> Any:
        """What `decide` returns on rank 0, on every rank. An OSError there is raised on every rank, as SharedError."""
        answer = [""]
        if self.is_first:
            answer = [_guarded(decide)]
        if self.world > 1:
            distributed.broadcast_object_list(answer, src=0)
        return _opened([json.loads(answer[0])])[0]

    def from_all(self, work: Callable[[], Any]) -> list[Any]:
        """What `work` returns on each rank, in rank order, on every rank. An OSError on any is a SharedError on all."""
        answers = [""] * self.world
        mine = _guarded(work)
        if self.world > 1:
            distributed.all_gather_object(answers, mine)
        else:
            answers = [mine]
        return _opened([json.loads(a) for a in answers])

    def wait(self) -> None:
        """Until every rank is here."""
        self.from_all(lambda: None)


class SharedError(OSError):
    """The file system refused something to one rank; raised on all, so that none waits for another."""


def _guarded(work: Callable[[], Any]) -> str:
    try:
        return json.dumps({"value": work()})
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return json.dumps({"error": f"{where}{error.strerror or error}"})


def _opened(answers: list[dict[str, Any]]) -> list[Any]:
    for answer in answers:
        if "error" in answer:
            raise SharedError(answer["error"])
    return [answer["value"] for answer in answers]
