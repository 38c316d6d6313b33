"""Do ranks stay out of each other's way in the folder through which they talk to the launching process?"""

from __future__ import annotations

import multiprocessing
from pathlib import Path

from forgeplan.runtime.launch_folder import LaunchFolder

NUM_RANKS, TIMES = 4, 200


def announce(root: Path, rank: int) -> None:
    folder = LaunchFolder(root)
    folder.enter(rank)
    for _ in range(TIMES):
        folder.announce_end()
    folder.leave(rank, 3)


def test_all_ranks_may_say_at_once_that_the_run_ends(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ranks = [context.Process(target=announce, args=(tmp_path, rank)) for rank in range(NUM_RANKS)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join()
    assert [process.exitcode for process in ranks] == [0] * NUM_RANKS
    folder = LaunchFolder(tmp_path)
    assert folder.is_ending()
    assert folder.exit_codes() == dict.fromkeys(range(NUM_RANKS), 3)
    assert folder.pids() == {}
    assert {path.name.split("-")[0] for path in tmp_path.iterdir()} == {"ending", "pid", "exit"}
