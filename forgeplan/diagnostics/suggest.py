"""Which known name was meant by an unknown one?"""

from __future__ import annotations

from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name with the fewest edits to `name`, if they are few; ties go to the same first letter."""
    found = ranked(name, known)
    return found[0] if found else None


def did_you_mean(name: str) -> str:
    return f"did you mean `{name}`?"


def ranked(name: str, known: Iterable[str], limit: int = 3) -> list[str]:
    """Known names that `name` may be a slip of, nearest first."""
    allowed = 1 if len(name) <= 4 else 2 if len(name) <= 8 else 3
    found = []
    for order, candidate in enumerate(dict.fromkeys(known)):
        if abs(len(candidate) - len(name)) <= allowed and candidate != name:
            edits = distance(name.lower(), candidate.lower(), allowed)
            if edits <= allowed and edits < max(len(name), len(candidate)):
                found.append((edits, candidate[:1] != name[:1], candidate[-1:] != name[-1:], order, candidate))
    return [candidate for *_, candidate in sorted(found)[:limit]]


def distance(a: str, b: str, enough: int = 1_000) -> int:
    """Insertions, deletions, replacements and swaps of neighbours that lead from `a` to `b`; stops above `enough`."""
    before: list[int] = []
    previous: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, previous, row = previous, row, [i]
        for j, y in enumerate(b, 1):
            cost = min(previous[j] + 1, row[j - 1] + 1, previous[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                cost = min(cost, before[j - 2] + 1)
            row.append(cost)
        if min(row) > enough:
            return enough + 1
    return row[-1]


def choice(names: Iterable[str], last: str = "or") -> str:
    """`a`, `b` or `c`."""
    quoted = [f"`{n}`" for n in names]
    return f" {last} ".join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)
