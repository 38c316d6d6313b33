"""What does the front end do with texts that nobody meant? Plans changed at random, each under a limit of time.

`python -m tests.dsl.fuzzing 1000000` (`make fuzz`) shows how far it is and stops at the first text that raises, takes
too long, or gets a diagnostic outside of it; `--first N` begins at input N, so that a failure comes again at once.
"""

from __future__ import annotations

import argparse
import random
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import FrameType

from attrs import frozen

from forgeplan.analysis import analyse
from forgeplan.diagnostics.diagnostic import Diagnostic
from forgeplan.diagnostics.formats import render_all
from forgeplan.diagnostics.source import Source
from forgeplan.dsl.formatter import CannotFormat, format_text
from forgeplan.dsl.lexer import lex
from forgeplan.dsl.library import STD
from forgeplan.dsl.parser import parse
from forgeplan.resources import resource as shipped

SECONDS = 1.0
"""Of processor time for one input in one stage."""

WHOLE = 25
"""Every so many inputs one goes through the whole analysis."""

ODD = (
    *"\0\x01\t\r\n\x0b\x0c\x1b\x7f\x85\xa0\u200b\u202e\u2028\u2029\ufeff\ufffd\U000e0041\ud800\udfff",
    *"\"'`“”#$\\{}[]().,:;=+-*/%<>?!&|~^@_–×ü名𐐀0189aeXx",
    *(
        '"""',
        "${",
        '\\"',
        "\\u{",
        "\\u{110000}",
        "\r\n",
        "**",
        "//",
        "..",
        "+=",
        "# forge: allow x",
        "##",
        "0x1f",
        "1e9",
    ),
    *(
        "1e999999",
        "9" * 400,
        "not " * 9,
        "(" * 9,
        "{a=" * 9,
        "[" * 9,
        "])}",
        "Ki",
        "%",
        "if",
        "then",
        "else",
        "for",
        "in",
    ),
    *(
        "self",
        "none",
        "auto",
        "forge 1",
        "forge 2",
        "import",
        "from",
        "plan",
        "partial",
        "extends",
        "profile",
        "delete",
    ),
)

VALUES = {
    "NUMBER": ("0", "1", "1e9", "0.5", "100%", "1_000_000_000_000", "9" * 300, "3h", "4Ki", "1e-30", "2.5GiB", "7"),
    "STRING": ('""', '"/"', '"../.."', '"std:models"', '"${self}"', '"${1 / 0}"', '"*"', '"a\\n\\u{0}"', '"""\n"""'),
    "NAME": ("self", "none", "auto", "true", "plan", "model", "decoder", "tokens", "steps", "x", "min", "len", "mesh"),
    "COMMENT": ("#", "##", "## doc", "# forge: allow no-checkpoint", "# forge: allow nothing", "#\t x \xa0"),
    "NL": ("\n\n", "\r\n", ",", "\n\n\n", "", " "),
    "TIMES": ("*", "/", "//", "%", "**", "+", "-"),
    "COMPARE": ("==", "<", "in", "and", ".."),
}
"""What may stand where a token of the kind stood, beside the others of the text."""

GAPS = (
    " ",
    "  ",
    "\t",
    "",
    "\n",
    "\n\n",
    " # c\n",
    "\n# c \n",
    "\n## d\n\n",
    "\r\n",
    " \r\n# c\r\n",
    "#\n",
    ",",
    ",\n",
)


class TooSlow(BaseException):
    """One input took more than its time. No `except Exception` on the way can swallow it."""


@frozen
class Seed:
    path: str
    text: str
    pieces: tuple[tuple[int, int, str], ...]
    """Where its tokens and comments stand, and of which kind each is."""


@frozen
class Input:
    index: int
    path: str
    text: str

    @property
    def is_whole(self) -> bool:
        """Whether it goes through the whole analysis."""
        return self.index % WHOLE == 0


@cache
def seeds() -> tuple[Seed, ...]:
    """All shipped plans and modules, these also declaration by declaration: small texts are searched sooner."""
    folder = Path(str(shipped("plans")))
    texts = [(path.name, path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.forge"))]
    for module in sorted(STD.glob("*.forge")):
        text = module.read_text(encoding="utf-8")
        blocks = ["forge 1\n" + block for block in text.split("\n\n")[1:]]
        texts += [(module.name, block) for block in (*blocks, text[: len(text) // 3])]
    return tuple(seed_of(str(folder / name), text) for name, text in texts)


def seed_of(path: str, text: str) -> Seed:
    lexed = lex(path, text)
    tokens = zip(lexed.tokens.starts, lexed.tokens.ends, lexed.tokens.kinds, strict=True)
    comments = ((c.span.start, c.span.end, "COMMENT") for c in lexed.comments)
    return Seed(path, text, tuple(sorted([*tokens, *comments])))


def inputs(first: int, count: int) -> Iterator[Input]:
    """The inputs `first` to `first + count - 1`: each depends on its number alone."""
    return (_input(index) for index in range(first, first + count))


def _input(index: int) -> Input:
    rng = random.Random(index)
    seed = rng.choice(seeds())
    change = rng.choices((of_kinds, of_gaps, of_tokens, of_characters, of_lines, across), (4, 3, 3, 2, 2, 1))[0]
    text = change(seed, rng)
    return Input(index, seed.path, text if rng.random() < 0.9 else of_characters(seed_of(seed.path, text), rng))


def of_tokens(seed: Seed, rng: random.Random) -> str:
    """A few tokens are deleted, doubled, swapped, or replaced by others or by what stands in no plan."""
    parts, between = _cut(seed)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8))):
        i, j = rng.randrange(len(parts)), rng.randrange(len(parts))
        match rng.randrange(5):
            case 0:
                parts[i] = ""
            case 1:
                parts[i] = f"{parts[i]} {parts[i]}"
            case 2:
                parts[i], parts[j] = parts[j], parts[i]
            case 3:
                parts[i] = parts[j]
            case _:
                parts[i] += rng.choice(ODD)
    return _joined(parts, between)


def of_kinds(seed: Seed, rng: random.Random) -> str:
    """Tokens take the place of others of their kind: most of these texts parse, and few make sense."""
    parts, between = _cut(seed)
    kinds = [kind for _, _, kind in seed.pieces]
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        i = rng.randrange(len(parts))
        others = [j for j, kind in enumerate(kinds) if kind == kinds[i]]
        j = rng.choice(others)
        parts[i] = rng.choice((parts[j], parts[j], *VALUES.get(kinds[i], ())))
    return _joined(parts, between)


def of_gaps(seed: Seed, rng: random.Random) -> str:
    """Space, line ends and comments come and go between tokens."""
    parts, between = _cut(seed)
    for _ in range(rng.choice((1, 2, 8, 32))):
        between[rng.randrange(len(between))] = rng.choice(GAPS)
    return _joined(parts, between)


def _cut(seed: Seed) -> tuple[list[str], list[str]]:
    """The tokens and comments, and what stands before, between and behind them: one more."""
    edges = [0, *(at for start, end, _ in seed.pieces for at in (start, end)), len(seed.text)]
    texts = [seed.text[a:b] for a, b in pairwise(edges)]
    return texts[1::2], texts[0::2]


def _joined(parts: Sequence[str], between: Sequence[str]) -> str:
    return between[0] + "".join(part + after for part, after in zip(parts, between[1:], strict=True))


def of_characters(seed: Seed, rng: random.Random) -> str:
    """Bytes go, come, and turn into others; what is no UTF-8 any more arrives as it does from a file."""
    data = bytearray(seed.text.encode("utf-8", "surrogatepass"))
    for _ in range(rng.choice((1, 1, 2, 4, 16))):
        at = rng.randrange(len(data) + 1)
        put = rng.choice((b"", bytes([rng.randrange(256)]), rng.choice(ODD).encode("utf-8", "surrogatepass")))
        data[at : at + rng.choice((0, 1, 1, 3, 30))] = put
    return data.decode("utf-8", rng.choice(("surrogateescape", "replace")))


def of_lines(seed: Seed, rng: random.Random) -> str:
    """Lines are deleted, doubled, moved, joined, indented, cut short, or ended in another way."""
    lines = seed.text.split("\n")
    for _ in range(rng.choice((1, 1, 2, 4))):
        i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
        match rng.randrange(7):
            case 0:
                lines[i] = ""
            case 1:
                lines.insert(j, lines[i])
            case 2:
                lines[i], lines[j] = lines[j], lines[i]
            case 3:
                lines[i] = lines[i] + " " + lines[j]
            case 4:
                lines[i] = rng.choice(("\t", "        ", "")) + lines[i].lstrip()
            case 5:
                lines[i] = lines[i][: rng.randrange(len(lines[i]) + 1)]
            case _:
                lines[i] += rng.choice(("\r", "  # x", " \\", ",", ";", " {", " }"))
    return rng.choice(("\n", "\n", "\n", "\n", "\r\n", "\r", "\u2028")).join(lines)


def across(seed: Seed, rng: random.Random) -> str:
    """The head of one text and the tail of another."""
    other = rng.choice(seeds()).text
    return seed.text[: rng.randrange(len(seed.text))] + other[rng.randrange(len(other)) :]


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises TooSlow after so much processor time of this process, in the main thread."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooSlow(f"more than {seconds:g} s of processor time")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def examine(path: str, text: str, *, whole: bool) -> str:
    """What became of a text, in a word. Raises what the front end raises, TooSlow, and AssertionError."""
    with time_limit(SECONDS):
        parsed = parse(Source(path, text))
    places_are_inside(parsed.diagnostics, {path: text})
    if whole:
        with time_limit(SECONDS):
            analysis = analyse(path, text=text)
            shown = render_all(analysis.diagnostics, analysis.sources)
        assert bool(shown) == bool(analysis.diagnostics)
        texts = {s.name: s.text for s in map(analysis.sources.get, _files(analysis.diagnostics)) if s is not None}
        places_are_inside(analysis.diagnostics, texts)
    if parsed.diagnostics:
        return "refused"
    with time_limit(SECONDS):
        try:
            format_text(text)
        except CannotFormat:  # pragma: no cover
            raise AssertionError("what parses cannot be formatted") from None
    return "parsed"


def _files(diagnostics: Iterable[Diagnostic]) -> set[str]:
    return {label.span.file for d in diagnostics for label in d.labels}


def places_are_inside(diagnostics: Sequence[Diagnostic], texts: dict[str, str]) -> None:
    """Every label and every edit of a fix lies in its text; the end of the text, where more is wanted, counts."""
    for d in diagnostics:
        spans = [label.span for label in d.labels] + [edit.span for fix in d.fixes for edit in fix.edits]
        for span in spans:
            if span.file in texts:
                assert 0 <= span.start <= span.end <= len(texts[span.file]) + 1, (d.code, span)


@frozen
class Failure(Exception):
    """An input that the front end did not take as it should."""

    given: Input
    cause: BaseException

    def __str__(self) -> str:
        given, cause = self.given, self.cause
        return f"input {given.index} ({given.path}): {type(cause).__name__}: {cause}\n{given.text!r}"


def fuzz(
    first: int, count: int, tell: Callable[[int, Counter[str]], None] = lambda number, found: None
) -> Counter[str]:
    """Examine so many inputs; how many parsed and how many were refused. Raises Failure."""
    found: Counter[str] = Counter()
    for given in inputs(first, count):
        try:
            found[examine(given.path, given.text, whole=given.is_whole)] += 1
        except (Exception, TooSlow) as cause:
            raise Failure(given, cause) from cause
        tell(given.index, found)
    return found


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("count", type=int)
    options.add_argument("--first", type=int, default=0)
    chosen = options.parse_args()
    began = time.monotonic()

    def tell(index: int, found: Counter[str]) -> None:
        done = index - chosen.first + 1
        if done % 2_000 == 0 or done == chosen.count:
            rate = done / (time.monotonic() - began)
            megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            print(f"{done:,} of {chosen.count:,}: {dict(found)}, {rate:.0f} a second, {megabytes} MB", flush=True)

    try:
        fuzz(chosen.first, chosen.count, tell)
    except Failure as failure:
        print(failure, file=sys.stderr)
        raise failure.cause from None
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
