"""Does a plan hold a key or password? Plans are stored in checkpoints and sent to whoever reads metrics.

Only shapes that issuers document are looked for, so that no ordinary text is taken for one.
"""

from __future__ import annotations

import re

from forgeplan.diagnostics.codes import Level, lint_code
from forgeplan.diagnostics.diagnostic import Diagnostic
from forgeplan.diagnostics.source import Source, Sources
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
    """One for each, and the text itself is hidden from what is shown of the file."""
    return [one for source in sources if not source.name.startswith(("<", "std:")) for one in _of(source)]


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
