"""Where does a string end, what do its escapes mean, and which parts of it are expressions?"""

from __future__ import annotations

import re

from attrs import frozen

MAX_NESTING = 8
"""How deep strings may stand inside `${…}` of strings."""

ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "$": "$"}

_LINE_PIECE = re.compile(r'[^"\\$\n]++|\\[^\n]|\$\{|\$|"|\n|\\')
_BLOCK_PIECE = re.compile(r'[^"\\$]++|\\.|\$\{|\$|"""|"|\\', re.DOTALL)
_CODE_PIECE = re.compile(r'[^"{}\\\n#]++|"""|"|\{|\}|\n|\\|\#')
_ESCAPE = re.compile(r"\\(?:u\{([0-9A-Fa-f]{1,6})\}|(.))", re.DOTALL)


@frozen
class Scan:
    """A string from its opening quote: `end` is behind the closing quote, or -1 where none was found.

    `expressions` are the places between `${` and `}`, outermost only. `opened` is where the part starts that stays
    open: the string itself, or a `${`.
    """

    end: int
    expressions: tuple[tuple[int, int], ...]
    opened: int


def scan_string(text: str, start: int, limit: int) -> Scan:
    """Read a string that begins at `start`. Takes time linear in what it reads, whatever stands there."""
    modes: list[
        tuple[str, int]
    ] = []  # ('"', place) and ('"""', place) for strings, ("{", place) and ("${", place) for code
    expressions: list[tuple[int, int]] = []
    at = start
    while at < limit:
        mode = modes[-1][0] if modes else "{"
        pattern = _LINE_PIECE if mode == '"' else _BLOCK_PIECE if mode == '"""' else _CODE_PIECE
        match = pattern.match(text, at, limit)
        if match is None:
            break
        piece, at = match[0], match.end()
        if mode.startswith('"'):
            if piece == mode:
                modes.pop()
                if not modes:
                    return Scan(at, tuple(expressions), start)
            elif piece == "${":
                modes.append(("${", at))
            elif piece in ("\n", "\\") and mode == '"':
                break
        elif piece.startswith('"'):
            if len(modes) > 2 * MAX_NESTING:
                break
            modes.append((piece, match.start()))
        elif piece == "{":
            modes.append(("{", at))
        elif piece == "}":
            opener, place = modes.pop()
            if opener == "${" and len(modes) == 1:
                expressions.append((place, match.start()))
        elif piece in ("\\", "#") or (piece == "\n" and any(m == '"' for m, _ in modes)):
            break
    return Scan(-1, (), _opened(modes, start))


def _opened(modes: list[tuple[str, int]], start: int) -> int:
    """The first `${` that stays open, if it stands in the outermost string; else the string."""
    return modes[1][1] - 2 if len(modes) > 1 and modes[1][0] == "${" else start


def plain_end(text: str, start: int, limit: int) -> int:
    """Behind the next quote of the line that is not escaped, taking `${` for text; -1 if there is none."""
    at = start + 1
    while at < limit:
        match = _LINE_PIECE.match(text, at, limit)
        if match is None or match[0] in ("\n", "\\"):
            return -1
        at = match.end()
        if match[0] == '"':
            return at
    return -1


@frozen
class BadEscape:
    start: int
    end: int
    text: str


def unescape(text: str, start: int, end: int) -> tuple[str, list[BadEscape]]:
    """The text of `text[start:end]` with its escapes resolved, and the escapes that mean nothing (kept as written)."""
    faults: list[BadEscape] = []
    pieces: list[str] = []
    at = start
    for match in _ESCAPE.finditer(text, start, end):
        pieces.append(text[at : match.start()])
        at = match.end()
        if match[1] is not None and _is_character(int(match[1], 16)):
            pieces.append(chr(int(match[1], 16)))
        elif match[2] in ESCAPES:
            pieces.append(ESCAPES[match[2]])
        else:
            faults.append(BadEscape(match.start(), at, match[0]))
            pieces.append(match[0])
    pieces.append(text[at:end])
    return "".join(pieces), faults


def _is_character(point: int) -> bool:
    return point <= 0x10FFFF and not 0xD800 <= point <= 0xDFFF
