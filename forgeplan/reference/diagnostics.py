"""Which codes are there, by family, with the rule of each and a link to its page?"""

from __future__ import annotations

from itertools import groupby

from forgeplan.diagnostics.pages import all_codes, page

FAMILIES = {
    "FP01": "Syntax",
    "FP02": "Names and imports",
    "FP03": "Fields, types and units",
    "FP04": "Parallelism",
    "FP05": "Model",
    "FP06": "Data",
    "FP07": "Optimisation and phases",
    "FP08": "Checkpoints and resuming",
    "FP09": "Budget and memory",
    "FP10": "Refusals of a running process",
}
_LINTS = "Named lints"
_OTHERS = "Others"


def diagnostics_page() -> str:
    """The index as Markdown; links lead to the pages of `docs/diagnostics`."""
    parts = [
        "# Reference of diagnostics",
        "Every code, with the rule that a plan or a run with this code breaks. Behind each link: the reason, a plan"
        " that fails and one that passes, as `forgeplan explain CODE` prints it. Codes are errors or refusals; lints"
        " are warnings.",
    ]
    for family, codes in groupby(sorted(all_codes(), key=_order), key=family_of):
        rows = [f"| [{code}](../diagnostics/{code}.md) | {_rule(code)} |" for code in codes]
        parts += [f"## {family}", "\n".join(["| code | rule |", "| --- | --- |", *rows])]
    return "\n\n".join(parts) + "\n"


def family_of(code: str) -> str:
    if not code.startswith("FP"):
        return _LINTS
    return FAMILIES.get(code[:4], _OTHERS)


def _order(code: str) -> tuple[bool, bool, str]:
    return not code.startswith("FP"), family_of(code) == _OTHERS, code


def _rule(code: str) -> str:
    found = page(code)
    return found.rule.replace("|", "\\|") if found else ""
