"""Which plans are read token by token? All that ship, those of the guides, and one with every construct."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
EVERYTHING = (Path(__file__).parent / "everything.forge").read_text(encoding="utf-8")


def _all(folder: str) -> list[Path]:
    return sorted((ROOT / folder).glob("**/*.forge"))


def _blocks(page: Path) -> list[str]:
    found = re.findall(r"^```forge\n(forge 1\n.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [block for block in found if "# error[" not in block]


TEXTS = {
    "everything": EVERYTHING,
    **{path.name: path.read_text(encoding="utf-8") for path in (*_all("plans"), *_all("forgeplan/std"))},
    **{
        f"{page.name} {i}": block
        for page in (*sorted((ROOT / "docs").glob("*.md")), ROOT / "README.md")
        for i, block in enumerate(_blocks(page))
    },
}
