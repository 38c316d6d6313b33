"""Which codes are there, by family, with the rule of each and a link to its page?"""

from __future__ import annotations

from itertools import groupby

from forgeplan.diagnostics.codes import registered
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
        " that fails and one that passes, as `forgeplan explain CODE` prints it. Codes are errors or refusals. Lints"
        " are silent, warnings or errors, as their level says, and `forge.toml` may give them another.",
    ]
    for family, codes in groupby(sorted(all_codes(), key=_order), key=family_of):
        columns = ("lint", "level", "rule") if family == _LINTS else ("code", "rule")
        head = [f"| {' | '.join(columns)} |", f"| {' | '.join('---' for _ in columns)} |"]
        rows = [f"| [{code}](../diagnostics/{code}.md) | {_level(code)}{_rule(code)} |" for code in codes]
        parts += [f"## {family}", "\n".join([*head, *rows])]
    return "\n\n".join(parts) + "\n"


def family_of(code: str) -> str:
    if not code.startswith("FP"):
        return _LINTS
    return FAMILIES.get(code[:4], _OTHERS)


def _level(code: str) -> str:
    """The cell with the level of a lint where no project says otherwise; nothing for an error."""
    import forgeplan.lints.judge  # noqa: F401  (registers the lints of the text)
    from forgeplan.compiler.invariants.registry import invariants

    invariants()
    known = registered().get(code)
    return f"{known.level.value} | " if known is not None and known.level is not None else ""


def _order(code: str) -> tuple[bool, bool, str]:
    return not code.startswith("FP"), family_of(code) == _OTHERS, code


def _rule(code: str) -> str:
    found = page(code)
    return found.rule.replace("|", "\\|") if found else ""
