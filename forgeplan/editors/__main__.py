"""Which files are made from the table of roles? `python -m forgeplan.editors` writes them anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from forgeplan.editors import snippets, textmate, vim

GENERATED: dict[str, Callable[[], str]] = {
    "forge.tmLanguage.json": textmate.text,
    "vscode/snippets/forge.json": snippets.text,
    "vim/syntax/forge.vim": vim.text,
}
"""File in `grammar/` → what it says."""


def write_all(folder: Path) -> None:
    for name, text in GENERATED.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text(), encoding="utf-8")


if __name__ == "__main__":
    write_all(Path(__file__).parents[2] / "grammar")
