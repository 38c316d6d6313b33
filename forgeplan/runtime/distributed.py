"""How does a process find the others, and are they the ones the plan was compiled for?

Everything up to the process group goes through the key-value store of torchrun, so that a wrong size or device is one
clear message on rank 0 and not a group that never forms.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta

import torch
from attrs import define, frozen
from torch import distributed
from torch._C._distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from forgeplan.diagnostics.refusal import Refusal
from forgeplan.diagnostics.refusals import LAUNCH_ENVIRONMENT, WORLD_SIZE
from forgeplan.plan.execution_plan import ExecutionPlan
from forgeplan.runtime.devices import check_device, device_for
from forgeplan.runtime.ranks import Ranks, guarded, opened

_VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
_PATIENCE = timedelta(minutes=10)
"""How long a rank waits for the others to start, and for rank 0 to compile."""


@frozen
class Place:
    """Where this process stands among all, and among those of its machine."""

    rank: int = 0
    world: int = 1
    local_rank: int = 0
    local_world: int = 1


def place_in(environment: Mapping[str, str]) -> Place:
    """The place that a launcher gave this process, or the only place if none did. Refusal FP1007 for half an answer."""
    if "RANK" not in environment and "WORLD_SIZE" not in environment:
        return Place()
    numbers = {}
    for name in _VARIABLES:
        text = environment.get(name, "")
        if not text or (name != "MASTER_ADDR" and not text.isdecimal()):
            state = f"is {text!r}" if text else "is not set"
            raise Refusal(
                LAUNCH_ENVIRONMENT,
                f"{name} {state}, though {_told(environment)}",
                "start it with `forgeplan run`, with torchrun, or without any of these variables",
            )
        numbers[name] = int(text) if name != "MASTER_ADDR" else 0
    return Place(numbers["RANK"], numbers["WORLD_SIZE"], numbers["LOCAL_RANK"], numbers["LOCAL_WORLD_SIZE"])


def _told(environment: Mapping[str, str]) -> str:
    return ", ".join(f"{n} = {environment[n]}" for n in _VARIABLES if environment.get(n))


class OtherRankFailed(Exception):
    """Another rank has said why the run cannot start; `exit_code` is the one to end with, silently."""

    def __init__(self, exit_code: int) -> None:
        super().__init__(f"exit code {exit_code}")
        self.exit_code = exit_code


@contextmanager
def _store_trouble(place: Place) -> Iterator[None]:
    """A store that cannot be opened, is gone or does not answer is Refusal FP1007, in one line."""
    try:
        yield
    except (RuntimeError, ValueError) as error:
        at = f"{os.environ.get('MASTER_ADDR')}:{os.environ.get('MASTER_PORT')}"
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise Refusal(
            LAUNCH_ENVIRONMENT,
            f"rank {place.rank} of {place.world} does not find the others through {at}: {reason}",
            (
                "MASTER_ADDR must be the machine of rank 0, and MASTER_PORT a port that is free there",
                "on one machine, `forgeplan run FILE --nproc N` chooses a free port itself",
            ),
        ) from error


@define
class Meeting:
    """The ranks before they are a process group. `store` is None for a process alone."""

    place: Place
    store: Store | None

    @classmethod
    def at(cls, place: Place) -> Meeting:
        """Connect to the store that the launcher opened; waits for it."""
        if place.world == 1 and "MASTER_ADDR" not in os.environ:
            return cls(place, None)
        with _store_trouble(place):
            store, _, _ = next(iter(rendezvous("env://", place.rank, place.world, timeout=_PATIENCE)))
        restarts = os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")
        return cls(place, PrefixStore(f"forgeplan/{restarts}", store))

    def bytes_from_first(self, read: Callable[[], bytes]) -> bytes:
        """What `read` returns on rank 0. If it raises, it raises there, and OtherRankFailed everywhere else."""
        if self.store is None:
            return read()
        if self.place.rank != 0:
            with _store_trouble(self.place):
                answer = self.store.get("plan")
            if answer[:1] == b"!":
                raise OtherRankFailed(int(answer[1:]))
            return answer[1:]
        try:
            content = read()
        except BaseException as error:
            self.store.set("plan", f"!{exit_code_of(error)}")
            raise
        self.store.set("plan", "=" + content.decode())
        return content

    def agree(self, check: Callable[[], None]) -> None:
        """Run `check` on every rank; the Refusal of the lowest rank that has one is raised on all."""
        mine = guarded(check)
        if self.store is not None:
            with _store_trouble(self.place):
                mine = self._first_refusal(self.store, mine)
        opened([mine])

    def _first_refusal(self, store: Store, mine: str) -> str:
        """Of the `guarded` answers of all ranks, the first that is not like a check that found nothing."""
        store.set(f"check/{self.place.rank}", mine)
        if self.place.rank == 0:
            fine = guarded(lambda: None)
            answers = (store.get(f"check/{rank}").decode() for rank in range(self.place.world))
            store.set("check", next((answer for answer in answers if answer != fine), fine))
        return str(store.get("check").decode())

    def is_first_to_say(self, what: str) -> bool:
        """Whether no rank has said this yet. Where the store is gone, only rank 0 speaks."""
        if self.store is None:
            return True
        try:
            return self.store.add(f"said/{what}", 1) == 1
        except (RuntimeError, ValueError):
            return self.place.rank == 0


def exit_code_of(error: BaseException) -> int:
    """The documented exit code of a command that ends with this exception."""
    from forgeplan.diagnostics.refusal import UsageError
    from forgeplan.runtime.options import ExitCode

    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    if isinstance(error, Refusal):
        return ExitCode.FAILED
    return ExitCode.USAGE if isinstance(error, UsageError) else ExitCode.INTERNAL


def join(plan: ExecutionPlan, meeting: Meeting) -> tuple[Ranks, torch.device]:
    """Check world and device against the plan, make the process group, and return who and where this rank is.

    Raises Refusal FP1003 or FP1004 on every rank, before a group is made, and FP1007 if it cannot be made.
    """
    place = meeting.place

    def check() -> None:
        check_world(plan, place)
        check_device(plan, place.local_rank)

    meeting.agree(check)
    device = device_for(plan, place.local_rank)
    if device.type == "cuda":
        torch.cuda.set_device(device)
    elif place.local_world > 1 and "OMP_NUM_THREADS" not in os.environ:
        # Threads of several ranks on the same cores wait for one another in spinning barriers.
        torch.set_num_threads(1)
    if place.world > 1:
        backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
        store = PrefixStore("group", meeting.store) if meeting.store is not None else None
        with _group_trouble(place):
            distributed.init_process_group(backend, store=store, rank=place.rank, world_size=place.world)
    return Ranks(place.rank, place.world), device


@contextmanager
def _group_trouble(place: Place) -> Iterator[None]:
    try:
        yield
    except (RuntimeError, ValueError) as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise Refusal(
            LAUNCH_ENVIRONMENT,
            f"rank {place.rank} of {place.world} cannot connect to the others: {reason}",
            "look at the network with `forgeplan doctor`, or name an interface: GLOO_SOCKET_IFNAME, NCCL_SOCKET_IFNAME",
        ) from error


def check_world(plan: ExecutionPlan, place: Place) -> None:
    """Refusal FP1003 unless as many processes run, in all and on this machine, as the plan's rank map says."""
    cluster = plan.job.cluster
    world = plan.mesh.world
    if (place.world, place.local_world) == (world, cluster.devices_per_node):
        return
    wanted = f"{world} processes, {cluster.devices_per_node} on each of {cluster.nodes} machines"
    if cluster.nodes == 1:
        wanted = f"{world} processes on one machine"
    raise Refusal(
        WORLD_SIZE,
        f"the plan was compiled for {wanted}; here are {place.world}, {place.local_world} on this machine",
        (
            f"start it as compiled: {_launch_line(plan)}",
            f"or compile it for what is here: `forgeplan run FILE --nproc {place.local_world}`",
        ),
    )


def _launch_line(plan: ExecutionPlan) -> str:
    cluster = plan.job.cluster
    nodes = f" --nnodes {cluster.nodes}" if cluster.nodes > 1 else ""
    return f"`torchrun{nodes} --nproc-per-node {cluster.devices_per_node} -m forgeplan run FILE`"
