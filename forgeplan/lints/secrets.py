"""Does a plan hold a key or password? Plans are stored in checkpoints and sent to whoever reads metrics.

Only shapes that issuers document are looked for, so that no ordinary text is taken for one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

import attrs

from forgeplan.diagnostics.codes import Level, lint_code
from forgeplan.diagnostics.diagnostic import Diagnostic
from forgeplan.diagnostics.source import HIDDEN, Source, Sources
from forgeplan.diagnostics.span import Span

SECRET = lint_code("looks-like-secret", "a plan holds no keys and passwords", Level.DENY)

_SHAPES = {
    "a HuggingFace token": r"\bhf_[A-Za-z0-9]{30,}\b",
    "an OpenAI or Anthropic key": r"\bsk-[A-Za-z0-9_-]{20,}",
    "a GitHub token": r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{40,})\b",
    "a GitLab token": r"\bglpat-[A-Za-z0-9_-]{20,}",
    "an AWS access key": r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b",
    "a Google API key": r"\bAIza[0-9A-Za-z_-]{35}",
    "a Slack token": r"\bxox[abeoprs]-[A-Za-z0-9-]{10,}",
    "a private key": r"-----BEGIN [A-Z ]*PRIVATE KEY-----",
    "a password in a URL": r"(?<=://)[^\s/:@\"]+:[^\s/@\"$]{3,}(?=@)",
}
_ANY = re.compile("|".join(f"(?P<g{number}>{shape})" for number, shape in enumerate(_SHAPES.values())))
_NAMES = tuple(_SHAPES)


def secrets(sources: Sources) -> list[Diagnostic]:
    """One for each, in files and on the command line; the text itself is hidden from what is shown of them."""
    return [one for source in sources if not source.name.startswith("std:") for one in _of(source)]


def texts(found: Iterable[Diagnostic], sources: Sources) -> tuple[str, ...]:
    """The keys themselves."""
    places = [(source, one.span) for one in found if one.span and (source := sources.get(one.span.file))]
    return tuple(dict.fromkeys(source.text[span.start : span.end] for source, span in places))


@lru_cache(maxsize=4)
def _any_of(keys: tuple[str, ...]) -> re.Pattern[str]:
    """Finds any of the texts, the longest first: a file may be a list of thousands."""
    return re.compile("|".join(re.escape(key) for key in sorted(keys, key=len, reverse=True)))


def without(keys: tuple[str, ...], diagnostic: Diagnostic) -> Diagnostic:
    """The same message where it quotes no key: not in words, and not in what a fix would write."""
    said = [diagnostic.message, *diagnostic.help, *diagnostic.notes]
    said += [label.text for label in diagnostic.labels]
    said += [text for fix in diagnostic.fixes for text in (fix.title, *(edit.replacement for edit in fix.edits))]
    for key in dict.fromkeys(_any_of(keys).findall("\n".join(said))) if keys else ():
        shown = HIDDEN * len(key)
        diagnostic = attrs.evolve(
            diagnostic,
            message=diagnostic.message.replace(key, shown),
            labels=tuple(attrs.evolve(label, text=label.text.replace(key, shown)) for label in diagnostic.labels),
            help=tuple(line.replace(key, shown) for line in diagnostic.help),
            notes=tuple(line.replace(key, shown) for line in diagnostic.notes),
            fixes=tuple(
                fix
                for fix in diagnostic.fixes
                if key not in fix.title and not any(key in edit.replacement for edit in fix.edits)
            ),
        )
    return diagnostic


def _of(source: Source) -> list[Diagnostic]:
    found = []
    for match in _ANY.finditer(source.text):
        span = Span(source.name, match.start(), match.end())
        source.hide(span)
        name = _NAMES[int(str(match.lastgroup)[1:])]
        found.append(
            SECRET.at(
                span,
                f"this looks like {name}",
                help="take it out, and let the program that needs it read it from the environment",
                notes="it stays valid until it is revoked, wherever this file has been",
            )
        )
    return found
