"""How is a number of things said?"""

from __future__ import annotations


def plural(number: int, word: str) -> str:
    """`1 device`, `4 devices`, `2 batches`."""
    many = "es" if word.endswith("ch") else "s"
    return f"{number:,} {word}{'' if number == 1 else many}"
