"""How does an editor read a TextMate grammar? Line by line, with a stack of open regions, earliest match first.

It covers what grammars of this kind use: `match` with captures, `begin`/`end` with names, `include` of the repository.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from attrs import define, field

Scoped = tuple[int, int, tuple[str, ...]]
"""From, to, and the names of all that is open there, outermost first."""

_compiled = cache(re.compile)


@define
class Reader:
    grammar: dict[str, Any]
    _open: list[dict[str, Any]] = field(factory=list)

    def read(self, text: str) -> Iterator[Scoped]:
        """Every stretch of a text with its scopes; lines end at `\\n`, which the patterns see, as in an editor."""
        start = 0
        for line in text.splitlines(keepends=True):
            for begin, end, scopes in self._line(line):
                yield start + begin, start + end, scopes
            start += len(line)

    def _line(self, line: str) -> Iterator[Scoped]:
        at, empty = 0, (-1, 0)
        while True:
            found = self._earliest(line, at)
            if found is None:
                break
            match, rule = found
            if match.start() > at:
                yield at, match.start(), self._scopes()
            yield from self._take(match, rule)
            state = (match.end(), len(self._open))
            if match.end() == match.start():
                if empty == state or ("begin" not in rule and rule is not _END):
                    break
                empty = state
            at = match.end()
        if at < len(line):
            yield at, len(line), self._scopes()

    def _earliest(self, line: str, at: int) -> tuple[re.Match[str], dict[str, Any]] | None:
        """The end of the innermost region wins over rules that match at the same place."""
        best: tuple[re.Match[str], dict[str, Any]] | None = None
        if self._open:
            ends = _compiled(self._open[-1]["end"]).search(line, at)
            best = (ends, _END) if ends else None
        for rule in self._rules(self._open[-1]["patterns"] if self._open else self.grammar["patterns"]):
            match = _compiled(rule.get("match") or rule["begin"]).search(line, at)
            if match and (best is None or match.start() < best[0].start()):
                best = match, rule
        return best

    def _rules(self, patterns: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for pattern in patterns:
            if "include" in pattern:
                included = self.grammar["repository"][pattern["include"].removeprefix("#")]
                yield from self._rules([included] if "begin" in included else included["patterns"])
            else:
                yield pattern

    def _take(self, match: re.Match[str], rule: dict[str, Any]) -> Iterator[Scoped]:
        if rule is _END:
            region = self._open[-1]
            yield from self._captured(match, region.get("endCaptures", {}), self._scopes())
            self._open.pop()
        elif "begin" in rule:
            self._open.append(rule)
            yield from self._captured(match, rule.get("beginCaptures", {}), self._scopes())
        else:
            names = (rule["name"],) if "name" in rule else ()
            yield from self._captured(match, rule.get("captures", {}), (*self._scopes(), *names))

    def _captured(self, match: re.Match[str], captures: dict[str, Any], scopes: tuple[str, ...]) -> Iterator[Scoped]:
        at = match.start()
        for number, capture in sorted(captures.items(), key=lambda item: int(item[0])):
            start, end = match.span(int(number))
            if start < 0 or start == end:
                continue
            if at < start:
                yield at, start, scopes
            if "patterns" in capture:
                inner = Reader({**self.grammar, "patterns": capture["patterns"]})
                yield from (
                    (a + start, b + start, (*scopes, *names[1:])) for a, b, names in inner.read(match[int(number)])
                )
            else:
                yield start, end, (*scopes, capture["name"])
            at = end
        if at < match.end():
            yield at, match.end(), scopes

    def _scopes(self) -> tuple[str, ...]:
        return (self.grammar["scopeName"], *(region["name"] for region in self._open if "name" in region))


_END: dict[str, Any] = {}
