"""How many cells of a terminal does a text fill, and what stands for a character that cannot be shown as it is?

Control characters, invisible ones and those that change the direction of writing are shown by name, so that a text
from a file can neither move the cursor nor look like another text.
"""

from __future__ import annotations

import re
import unicodedata

_HIDDEN = {"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"}
_PLAIN = re.compile(r"[ -~]*")


def shown(char: str) -> str:
    """What is printed for one character: itself, a control picture such as `␛`, or `⟨U+202E⟩`."""
    if " " <= char <= "~" or unicodedata.category(char) not in _HIDDEN:
        return char
    point = ord(char)
    if point < 0x20:
        return chr(0x2400 + point)
    return "␡" if point == 0x7F else f"⟨U+{point:04X}⟩"


def clean(text: str) -> str:
    """A text as it is printed; line breaks stay."""
    if _PLAIN.fullmatch(text):
        return text
    return "".join(char if char == "\n" else shown(char) for char in text)


def cells(text: str) -> int:
    """Width of a clean text: two cells for wide characters, none for combining ones."""
    if text.isascii():
        return len(text)
    return sum(map(_width, text))


def wrap(text: str, width: int, indent: str = "") -> list[str]:
    """Lines of at most `width` cells, broken at spaces; the second and following ones begin with `indent`.

    A single word that is wider, such as a path, stays whole. Lines that are indented already are taken as they are.
    """
    lines: list[str] = []
    for part in text.split("\n"):
        start = indent if lines else ""
        if part.startswith(" "):
            lines.append(start + part)
        else:
            lines += _wrapped(part, width, start, indent)
    return lines


def _wrapped(text: str, width: int, start: str, indent: str) -> list[str]:
    lines: list[str] = []
    line, filled, is_empty = start, cells(start), True
    for word in text.split(" "):
        wide = cells(word)
        if not is_empty and filled + 1 + wide > width:
            lines.append(line.rstrip())
            line, filled, is_empty = indent, cells(indent), True
        line += word if is_empty else f" {word}"
        filled += wide + (not is_empty)
        is_empty = False
    return [*lines, line.rstrip()]


def _width(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
