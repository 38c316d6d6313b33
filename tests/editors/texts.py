"""Which plans are read token by token? All that ship, those of the guides, and one with every construct."""

from __future__ import annotations

import re
from pathlib import Path

from forgeplan.dsl.functions import FUNCTIONS
from forgeplan.dsl.numbers import MULTIPLIERS
from forgeplan.dsl.params import TYPES
from forgeplan.dsl.units import UNITS

ROOT = Path(__file__).parents[2]
EVERYTHING = (Path(__file__).parent / "everything.forge").read_text(encoding="utf-8")


def _all(folder: str) -> list[Path]:
    return sorted((ROOT / folder).glob("**/*.forge"))


def _blocks(page: Path) -> list[str]:
    found = re.findall(r"^```forge\n(forge 1\n.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [block for block in found if "# error[" not in block]


def _every_word() -> str:
    """Every unit and multiplier, at the digits and behind a space; every function and every type."""
    numbers = [f"2{unit}" for unit in (*UNITS, *MULTIPLIERS)] + [f"1.5 {unit}" for unit in UNITS if unit.isalpha()]
    lines = [f"let numbers = [{', '.join(numbers)}]"]
    lines += [f"let f{i} = {name}([1, 2])" for i, name in enumerate(FUNCTIONS)]
    lines += [f"param t{i}: {name} = auto" for i, name in enumerate((*TYPES, "List[Int]", "OneOf(a, b)"))]
    return "\n".join(["forge 1", *lines, ""])


TEXTS = {
    "everything": EVERYTHING,
    "every word": _every_word(),
    **{path.name: path.read_text(encoding="utf-8") for path in (*_all("plans"), *_all("forgeplan/std"))},
    **{
        f"{page.name} {i}": block
        for page in (*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md")
        for i, block in enumerate(_blocks(page))
    },
}
