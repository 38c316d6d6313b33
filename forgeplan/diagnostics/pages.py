"""Which page explains a code, and how is it shown?

A page is `docs/diagnostics/<code>.md`: the rule, the reason, then `## Fails` and `## Passes` with a plan each, or, for
what only a running process can refuse, `## When` and `## Then`; perhaps `## Command line`.
"""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from functools import cache

from attrs import frozen

from forgeplan.diagnostics.cells import cells, clean, wrap
from forgeplan.diagnostics.paint import Paint, painter
from forgeplan.resources import resource

_FOLDER = "docs/diagnostics"
_FAMILY = re.compile(r"(?i)fp\d{4}")
_MARKER = re.compile(r"# (error|warning)(-above)?\[.*")
_BLOCKS = re.compile(r"(?ms)^```(?:forge|toml) ?(\S*)\n(.*?)^```")
_MARGIN = "  "
_BULLET = re.compile(r"(\* |- |\d+\. )?")


@frozen
class Page:
    """One code explained. Sections that a page does not have are empty."""

    code: str
    rule: str
    reason: str
    sections: dict[str, str]
    """Text under each `## ` heading, in order."""

    @property
    def title(self) -> str:
        return f"{self.code}: {self.rule}"

    @property
    def fails(self) -> str:
        """The plan, or statements of one, that breaks the rule; faulty lines end in a marker."""
        return self.files("Fails").get("", "")

    @property
    def passes(self) -> str:
        return self.files("Passes").get("", "")

    def files(self, section: str) -> dict[str, str]:
        """The files of a section, by the name behind ```` ```forge ```` or ```` ```toml ````; the plan has none."""
        return dict(_BLOCKS.findall(self.sections.get(section, "")))

    @property
    def when(self) -> str:
        return self.sections.get("When", "")

    @property
    def then(self) -> str:
        return self.sections.get("Then", "")

    @property
    def command_line(self) -> str:
        return self.sections.get("Command line", "")


def page(code: str) -> Page | None:
    """The page of a code or lint, in either case of letters; None if there is none."""
    name = _written(code)
    if name not in all_codes():
        return None
    return parse(resource(f"{_FOLDER}/{name}.md").read_text(encoding="utf-8"))


@cache
def all_codes() -> tuple[str, ...]:
    """Every code and lint that has a page, codes first, sorted."""
    names = (path.stem for path in resource(_FOLDER).glob("*.md") if path.stem.lower() not in ("readme", "index"))
    return tuple(sorted(names, key=lambda name: (not _FAMILY.fullmatch(name), name)))


def similar(code: str) -> tuple[str, ...]:
    """At most three codes or lints that were likely meant by one that does not exist, the nearest first."""
    if code[:2].upper() == "FP" and code[2:].isdecimal() and len(code) <= 6:
        return _nearest_numbers(code[2:].zfill(4))
    likeness = {known: SequenceMatcher(None, _written(code), known).ratio() for known in all_codes()}
    near = [known for known, ratio in likeness.items() if ratio >= 0.7]
    return tuple(sorted(near, key=lambda known: (-likeness[known], known))[:3])


def _nearest_numbers(digits: str) -> tuple[str, ...]:
    """Codes with at most one other digit, those of the same family first, then those with the nearest number."""
    near = [
        known
        for known in all_codes()
        if _FAMILY.fullmatch(known) and sum(a != b for a, b in zip(known[2:], digits, strict=True)) <= 1
    ]
    return tuple(sorted(near, key=lambda known: (known[2:4] != digits[:2], abs(int(known[2:]) - int(digits))))[:3])


def _written(code: str) -> str:
    """A code in its own case of letters."""
    return code.lower() if "-" in code or code[:2].upper() != "FP" else code.upper()


def looks_like_code(text: str) -> bool:
    """Whether a word is a code or the name of a lint, rather than a file."""
    return bool(_FAMILY.fullmatch(text)) or text.lower() in all_codes()


def parse(text: str) -> Page:
    """A page from its text. Raises ValueError if its first line is not `# CODE: rule`."""
    first, _, rest = text.partition("\n")
    found = re.fullmatch(r"# ([\w-]+): (.+)", first)
    if not found:
        raise ValueError(f"the first line of a page is `# CODE: rule`, and here it is {first!r}")
    reason, *parts = re.split(r"(?m)^## ", rest)
    sections = {}
    for part in parts:
        heading, _, body = part.partition("\n")
        sections[heading.strip()] = body.strip("\n")
    return Page(found[1], found[2], reason.strip("\n"), sections)


def render(page: Page, width: int = 80, color: bool = False) -> str:
    """A page as it is printed on a terminal, without a line break at the end."""
    paint = painter(color)
    lines = [paint(line, "title") for line in wrap(clean(page.title), width, "    ")]
    lines += ["", *_body(page.reason, width, paint)]
    for heading, body in page.sections.items():
        lines += ["", paint(heading, "title"), "", *_body(body, width, paint)]
    return "\n".join(lines)


def _body(text: str, width: int, paint: Paint) -> list[str]:
    """Paragraphs and lists are wrapped, plans and examples indented as they are."""
    lines: list[str] = []
    block = ""
    for line, paragraph in _paragraphs(text):
        if line.startswith("```"):
            block = "" if block else line.removeprefix("```").split(" ")[0] or "text"
        elif block:
            part = _plan_line if block == "forge" else _example_line
            lines += [f"{_MARGIN}{shown}".rstrip() for shown in part(line, width - len(_MARGIN), paint)]
        elif not paragraph:
            lines.append(clean(line))
        else:
            indent = " " * len(_BULLET.match(line)[0])  # type: ignore[index]
            lines += [_prose(part, paint) for part in wrap(clean(line), width, indent)]
    return lines


def _paragraphs(text: str) -> list[tuple[str, bool]]:
    """Lines, those of a paragraph or an item of a list joined; with whether they may be wrapped."""
    found: list[tuple[str, bool]] = []
    is_block = joins = False
    for line in text.split("\n"):
        fence = line.startswith("```")
        is_block ^= fence
        if is_block or fence or not line.strip() or (line.startswith("    ") and not joins):
            found.append((line, False))
            joins = False
        elif joins and not _BULLET.match(line)[0]:  # type: ignore[index]
            found[-1] = (f"{found[-1][0]} {line.strip()}", True)
        else:
            found.append((line.strip(), True))
            joins = True
    return found


def _plan_line(line: str, width: int, paint: Paint) -> list[str]:
    """A line of a plan; what is announced on it stands below where it would go beyond the width."""
    marker = _MARKER.search(line)
    if not marker:
        return [clean(line)]
    code = clean(line[: marker.start()])
    said = marker[0].replace("-above[", "[")
    if code.strip() and cells(line) <= width:
        return [code + paint(clean(said), marker[1])]
    indent = " " * (len(code) - len(code.lstrip()))
    below = [indent + paint(part, marker[1]) for part in wrap(clean(said), width - len(indent), "#     ")]
    return [*([code] if code.strip() else []), *below]


def _example_line(line: str, width: int, paint: Paint) -> list[str]:
    """A line of what is printed or typed; only the former is wrapped."""
    text = line.lstrip()
    if text.startswith("$"):
        return [clean(line)]
    indent = line[: len(line) - len(text)]
    return [indent + part for part in wrap(clean(text), width - len(indent), "    ")]


def _prose(line: str, paint: Paint) -> str:
    return re.sub(r"`[^`]*`", lambda found: paint(found[0], "code"), line)
