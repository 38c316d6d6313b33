"""How are text blocks laid out on a page of fixed width?"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from fractions import Fraction

from forgeplan.compiler.wording import fixed

BAR = "█"
EMPTY = "░"


def section(title: str, lines: Iterable[str], width: int) -> list[str]:
    """A title ruled to the full width, and the lines under it, indented by two."""
    return [f"── {title} ".ljust(width, "─"), *("  " + line if line else "" for line in lines)]


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """A sentence in lines; those after the first are indented."""
    return textwrap.wrap(text, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def shortened(text: str, width: int) -> str:
    """The text, or its beginning and an ellipsis where it is longer."""
    return text if len(text) <= width else text[: max(width, 2) - 1] + "…"


def table(rows: Sequence[Sequence[str]], align: str, gap: str = "  ") -> list[str]:
    """Columns side by side; `align` has one letter a column, `l` or `r`."""
    widths = [max((len(row[i]) for row in rows), default=0) for i in range(len(align))]
    lines = []
    for row in rows:
        cells = (c.ljust(w) if a == "l" else c.rjust(w) for c, w, a in zip(row, widths, align, strict=True))
        lines.append(gap.join(cells).rstrip())
    return lines


def bar(part: Fraction, width: int) -> str:
    """A filled share of a bar; anything above zero shows."""
    filled = min(width, max(round(part * width), 1 if part > 0 else 0))
    return BAR * filled + EMPTY * (width - filled)


def percent(part: Fraction) -> str:
    """`97.0%`, `<0.1%`."""
    if 0 < part < Fraction(1, 1000):
        return "<0.1%"
    return f"{fixed(part * 100, 1)}%"
