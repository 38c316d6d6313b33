"""Is a fault the notation of another language: `key: value`, `[section]`, `- item`, `// comment`, `a ? b : c`?"""

from __future__ import annotations

from forgeplan.diagnostics.codes import code
from forgeplan.diagnostics.diagnostic import Diagnostic, Edit, Fix, Safety
from forgeplan.diagnostics.span import Span
from forgeplan.dsl import syntax
from forgeplan.dsl.site import Site, Verdict, safe

FP0110 = code("FP0110", "no foreign notation: `k: v`, `k := v`, `[section]`, `- item`, `True`, `null`")

CONSTANTS = {"True": True, "False": False, "None": None, "null": None, "NULL": None, "nil": None}


def constant(name: str, span: Span) -> tuple[syntax.Constant, Diagnostic]:
    """What `True` or `null` means, and the message about its spelling."""
    value = CONSTANTS[name]
    ours = "none" if value is None else str(value).lower()
    fix = safe(f"write `{ours}`", Edit(span, ours))
    return syntax.Constant(value, span=span), FP0110.at(span, f"`{name}` is written `{ours}` here", fixes=fix)


def colon(site: Site) -> Verdict | None:
    """`key: value`, `key := value`."""
    if site.kind(site.at) != "COLON" or not site.in_body or not site.only_path():
        return None
    walrus = site.kind(site.at + 1) == "EQ" and site.tokens.starts[site.at + 1] == site.tokens.ends[site.at]
    last = site.at + 1 if walrus else site.at
    key = site.text(site.first, site.at - 1)
    edit = Edit(Span(site.tokens.file, site.gap(site.at).start, site.tokens.ends[last]), " =")
    message = f"a field is set with `=`, not with `{':=' if walrus else ':'}`"
    fault = FP0110.at(site.span(site.at, last), message, help=f"write `{key} = …`", fixes=safe("write `=`", edit))
    return Verdict(fault, last + 1 if site.run.feed("EQ", site.at) else None)


def quoted_key(site: Site) -> Verdict | None:
    """`"key": value`, `"key" = value`."""
    sign = site.kind(site.at + 1)
    if site.kind(site.at) != "STRING" or site.at != site.first or sign not in ("COLON", "EQ"):
        return None
    name = site.word(site.at).strip('"')
    edits = (Edit(site.span(site.at), name), Edit(site.span(site.at + 1), " =" if sign == "COLON" else "="))
    fixes = Fix(f"write `{name} =`", edits, Safety.SAFE) if name.isidentifier() else ()
    message = "the name of a field stands without quotes"
    fault = FP0110.at(site.span(site.at, site.at + 1), message, help=f"write `{name} = …`", fixes=fixes)
    fits = site.run.feed("NAME", site.at) and site.run.feed("EQ", site.at + 1)
    return Verdict(fault, site.at + 2 if fits else None)


def line_start(site: Site) -> Verdict | None:
    """`[optimizer]` of TOML, `- item` of YAML, `// comment`."""
    if site.at != site.first or not site.in_body:
        return None
    kind, place = site.kind(site.at), site.span(site.at)
    if kind == "LSQB":
        name = ".".join(site.word(i) for i in range(site.at + 1, site.end) if site.kind(i) == "NAME") or "name"
        whole = site.span(site.at, max(site.at, site.end - 1))
        help = f"write `{name} = {{ … }}` around its fields"
        return Verdict(FP0110.at(whole, "a section is not opened with `[…]`", help=help))
    if kind == "MINUS":
        help = "write a list as `name = [a, b]`; an expression goes on with `-` at the end of the line before"
        return Verdict(FP0110.at(place, "a line does not begin with `-`", help=help))
    if kind == "TIMES" and site.word(site.at) in ("//", "/"):
        return Verdict(FP0110.at(place, "a comment begins with `#`", fixes=safe("write `#`", Edit(place, "#"))))
    return None


def ternary(site: Site) -> Verdict | None:
    """`a ? b : c`."""
    if site.kind(site.at) != "OPT" or site.first == site.at:
        return None
    message = "`?` does not choose between values"
    return Verdict(FP0110.at(site.span(site.at), message, help="write `if condition then a else b`"))
