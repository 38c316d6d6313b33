"""Which colour has which part of a message?"""

from __future__ import annotations

from collections.abc import Callable

Paint = Callable[[str, str], str]
"""Text and style → what is printed."""

STYLES = {
    "error": "1;31",
    "warning": "1;33",
    "note": "1;36",
    "title": "1",
    "frame": "1;34",
    "other": "1;34",
    "code": "36",
    "faint": "2",
}


def painter(color: bool) -> Paint:
    """ANSI escapes if `color`, otherwise the text alone."""
    return _colored if color else _plain


def _colored(text: str, style: str) -> str:
    escape = STYLES.get(style)
    return f"\x1b[{escape}m{text}\x1b[0m" if escape and text else text


def _plain(text: str, style: str) -> str:
    return text
