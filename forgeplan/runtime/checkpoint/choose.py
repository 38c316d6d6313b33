"""From which checkpoint does a run go on, and why?

Rank 0 looks at the file system and decides; every rank then reads a share of the chosen files and compares checksums,
before any state of the run changes. The answer is the same on every rank.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from attrs import frozen

from forgeplan.diagnostics.refusal import Refusal
from forgeplan.diagnostics.refusals import CHECKSUM, STEP_MISSING, WOULD_OVERWRITE
from forgeplan.runtime.checkpoint import layout
from forgeplan.runtime.checkpoint.checksum import first_damage
from forgeplan.runtime.checkpoint.layout import Checkpoint
from forgeplan.runtime.ranks import Ranks


@frozen
class Decision:
    """`step` is None for a fresh start. `notes` tell what was passed over."""

    step: int | None
    path: Path | None
    reason: str
    notes: tuple[str, ...] = ()


def choose(folder: Path, resume: str | int, ranks: Ranks) -> Decision:
    """The checkpoint to go on from; collective. `resume` is "auto" (the newest good one), "none", or a step.

    Raises Refusal FP1011 (none, but there are checkpoints), FP1012 (a named step is not there) or FP1013 (damaged, and
    no good one to fall back to), on every rank.
    """
    steps: list[int] = ranks.from_first(lambda: _steps_by_age(folder))
    if resume == "none":
        if steps:
            raise _would_overwrite(folder, steps)
        return Decision(None, None, "fresh start: resume = none, and there is no checkpoint to lose")
    if isinstance(resume, int):
        return _named(folder, resume, steps, ranks)
    return _newest_good(folder, steps, ranks)


def _named(folder: Path, step: int, steps: list[int], ranks: Ranks) -> Decision:
    if step not in steps:
        incomplete = ranks.from_first(lambda: step in layout.incomplete_steps(folder))
        raise _missing(folder, step, steps, incomplete)
    damage = damage_of(folder, step, ranks)
    if damage is not None:
        others = [s for s in steps if s != step]
        raise Refusal(
            CHECKSUM,
            f"the checkpoint of step {step} in {folder} is damaged: {damage}",
            f"other steps there: {_listed(others)}" if others else "there is no other checkpoint",
        )
    return Decision(step, folder / layout.step_name(step), f"resume from step {step}: it was named")


def _newest_good(folder: Path, steps: list[int], ranks: Ranks) -> Decision:
    notes: list[str] = []
    for step in steps:
        damage = damage_of(folder, step, ranks)
        if damage is None:
            reason = f"resume from step {step}: the newest checkpoint in {folder}"
            if notes:
                reason = f"resume from step {step}: the newest good checkpoint in {folder}"
            return Decision(step, folder / layout.step_name(step), reason, tuple(notes))
        notes.append(f"FP1013: the checkpoint of step {step} is damaged and was passed over: {damage}")
    if notes:
        raise Refusal(
            CHECKSUM,
            f"every checkpoint in {folder} is damaged: " + "; ".join(n.split(": ", 1)[1] for n in notes),
            "restore one from a copy, or move the folder away to start from scratch",
        )
    incomplete: list[int] = ranks.from_first(lambda: layout.incomplete_steps(folder))
    passed_over = (f"incomplete and passed over: step {_listed(incomplete)}",) if incomplete else ()
    return Decision(None, None, f"fresh start: there is no checkpoint in {folder}", passed_over)


def damage_of(folder: Path, step: int, ranks: Ranks) -> str | None:
    """What is wrong with the files of a committed checkpoint, or None; collective, each rank reads its share."""

    def check() -> str | None:
        checkpoint = layout.read_marker(folder / layout.step_name(step))
        if checkpoint is None:
            return f"rank {ranks.rank} does not see {layout.step_name(step)}/{layout.MARKER}"
        return first_damage(checkpoint.path, share(checkpoint, ranks.rank, ranks.world))

    return next((d for d in ranks.from_all(check) if d is not None), None)


def share(checkpoint: Checkpoint, rank: int, world: int) -> Iterable[layout.FileFact]:
    """The files that one of `world` readers checks: largest first, dealt in turn."""
    return sorted(checkpoint.files, key=lambda f: (-f.size_bytes, f.path))[rank::world]


def _steps_by_age(folder: Path) -> list[int]:
    return [c.step for c in sorted(layout.list_checkpoints(folder), key=layout.by_age, reverse=True)]


def _would_overwrite(folder: Path, steps: list[int]) -> Refusal:
    return Refusal(
        WOULD_OVERWRITE,
        f"resume = none would write over the checkpoints in {folder}: step {_listed(steps)}",
        ("give the run another `checkpoint.path` or another name", "or go on from them: `--resume auto`"),
    )


def _missing(folder: Path, step: int, steps: list[int], incomplete: bool) -> Refusal:
    state = "is incomplete: its save did not finish" if incomplete else "does not exist"
    return Refusal(
        STEP_MISSING,
        f"the checkpoint of step {step} in {folder} {state}",
        f"steps there: {_listed(steps)}" if steps else "there is no complete checkpoint in this folder",
    )


def _listed(steps: Iterable[int]) -> str:
    return ", ".join(str(s) for s in sorted(steps))
