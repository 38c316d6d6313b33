"""How is a plan of a page run, and what does the page say it reports?

A block that begins with `forge ` is a whole file; any other holds statements of a plan in the context below. A faulty
line ends in `# error[CODE]: part of the message` or `# warning[lint]: …`. Where the line has no room for it, or a
comment there would change the fault, the next line is `# error-above[CODE]: …`.
"""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import indent

from attrs import frozen

from forgeplan.analysis import analyse, run_tests
from forgeplan.diagnostics.diagnostic import Diagnostic
from forgeplan.diagnostics.pages import Page
from forgeplan.diagnostics.source import Sources

FILE = "plan.forge"
BESIDE = {f"chain/{n}.forge": f'forge 1\n\nimport "{n + 1}.forge" as chain\n' for n in range(1, 17)}
"""Files beside the plan that a page speaks of and does not show."""
CONTEXT = """forge 1

partial plan context {
  cluster   = { nodes = 1, devices_per_node = 4, arch = sm90, hbm = 141GB, bf16 = 989TFLOP/s }
  model     = decoder {
    layers = 32, dim = 4_096, heads = 32, kv_heads = 8, ffn = 14_336, vocab = 128_256, context = 4Ki tokens
  }
  sources   = { web = tokens { path = "web/*.npy" } }
  batch     = { global = 2Mi tokens, micro = 4 sequences, length = 4Ki tokens }
  optimizer = adamw { lr = 3e-4 }
  schedule  = cosine {}
  budget    = { tokens = 160B tokens }
}

plan example extends context {
%s
}
"""
_MARKER = re.compile(r"#\s*(error|warning|note)(-above)?\[([^\]]+)\]:\s*(.*?)\s*$")


@frozen(order=True)
class Reported:
    """A diagnostic as a page announces it; `message` is a part of the real one. Line 0 is no line of a file."""

    file: str
    line: int
    severity: str
    code: str
    message: str

    def announces(self, other: Reported) -> bool:
        same = (self.file, self.line, self.severity, self.code) == (other.file, other.line, other.severity, other.code)
        return same and self.message in other.message


def whole(block: str) -> str:
    """The file that a block of a page stands for."""
    return block if block.lstrip("\ufeff").startswith("forge ") else CONTEXT % indent(block.rstrip("\n"), "  ")


def files_of(page: Page, section: str) -> dict[str, str]:
    """The files that a section shows, by name; the plan is `plan.forge`."""
    return {name or FILE: text if name else whole(text) for name, text in page.files(section).items()}


def without_markers(files: dict[str, str]) -> dict[str, str]:
    """The files as a user would have written them: lines that are a marker alone go as a whole."""
    marker = rf" *{_MARKER.pattern[:-1]}(?m:$)"
    return {name: re.sub(rf"(?m:^){marker}\n|{marker}", "", text) for name, text in files.items()}


def announced(files: dict[str, str]) -> list[Reported]:
    """The diagnostics that the markers of the files announce, sorted."""
    found = []
    for name, text in files.items():
        for number, line in enumerate(text.split("\n"), start=1):
            marker = _MARKER.search(line)
            if marker:
                severity, above, code, message = marker.groups()
                found.append(Reported(name, number - 1 if above else number, severity, code, message))
    return sorted(found)


def diagnose(files: dict[str, str], overrides: tuple[str, ...] = ()) -> tuple[list[Diagnostic], Sources]:
    """What language, compiler and the files' own tests say about them."""
    text = files[FILE]
    beside = {str(Path(name).resolve()): text for name, text in {**BESIDE, **files}.items() if name != FILE}
    analysis = analyse(FILE, text=text, unsaved=beside, overrides=overrides)
    found = [*analysis.diagnostics]
    if not analysis.errors:
        found += [d for result in run_tests(FILE, text=text, overrides=overrides) for d in result.diagnostics]
    return found, analysis.sources


def reported(files: dict[str, str], overrides: tuple[str, ...] = ()) -> list[Reported]:
    """The same, sorted, in the words of a page."""
    found, sources = diagnose(files, overrides)
    return sorted(_reported(diagnostic, sources) for diagnostic in found)


def unmatched(said: list[Reported], found: list[Reported]) -> list[Reported]:
    """What is announced and not reported, or reported and not announced."""
    left = list(found)
    missing = []
    for one in said:
        match = next((other for other in left if one.announces(other)), None)
        if match is None:
            missing.append(one)
        else:
            left.remove(match)
    return missing + left


def _reported(diagnostic: Diagnostic, sources: Sources) -> Reported:
    span = diagnostic.span
    source = sources.get(span.file) if span else None
    line = source.position(span.start)[0] if source and span else 0
    file = span.file if span else ""
    return Reported(file, line, diagnostic.severity.value, diagnostic.code, diagnostic.message)
