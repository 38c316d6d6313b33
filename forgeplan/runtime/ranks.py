"""How do the processes of a run agree on small things?"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, TypeVar

from attrs import frozen
from torch import distributed

from forgeplan.diagnostics.codes import registered
from forgeplan.diagnostics.refusal import Refusal

T = TypeVar("T")


@frozen
class Ranks:
    """This process among the processes of the run.

    Every method is collective, and values travel as JSON. A Refusal or an OSError that one rank meets is raised on all
    (the second as SharedError), so that none waits for another that has left.
    """

    rank: int = 0
    world: int = 1

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def from_first(self, decide: Callable[[], Any]) -> Any:
        """What `decide` returns on rank 0, on every rank."""
        answer = [guarded(decide) if self.is_first else ""]
        if self.world > 1:
            distributed.broadcast_object_list(answer, src=0)
        return opened(answer)[0]

    def from_all(self, work: Callable[[], Any]) -> list[Any]:
        """What `work` returns on each rank, in rank order, on every rank."""
        mine = guarded(work)
        if self.world == 1:
            return opened([mine])
        answers = [""] * self.world
        distributed.all_gather_object(answers, mine)
        return opened(answers)

    def together(self, work: Callable[[], T]) -> T:
        """What `work` returns here, once it has succeeded on every rank; it may return anything."""
        found: list[T] = []
        self.from_all(lambda: found.append(work()))
        return found[0]

    def any(self, here: bool) -> bool:
        """Whether it is so on any rank."""
        return here if self.world == 1 else any(self.from_all(lambda: here))

    def wait(self) -> None:
        """Until every rank is here."""
        self.from_all(lambda: None)


class SharedError(OSError):
    """The file system refused something to one rank; raised on all."""


def guarded(work: Callable[[], Any]) -> str:
    """What `work` returns, or the Refusal or OSError that it meets, as text for the other ranks: see `opened`."""
    try:
        return json.dumps({"value": work()})
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return json.dumps({"error": f"{where}{error.strerror or error}"})
    except Refusal as refusal:
        return json.dumps({"refusal": [refusal.code.id, refusal.message, refusal.help]})


def opened(texts: list[str]) -> list[Any]:
    """The values in texts of `guarded`, one a rank. Raises what the first rank met that met something."""
    answers = [json.loads(text) for text in texts]
    for answer in answers:
        if "refusal" in answer:
            code, message, help = answer["refusal"]
            raise Refusal(registered()[code], message, help)
        if "error" in answer:
            raise SharedError(answer["error"])
    return [answer["value"] for answer in answers]
