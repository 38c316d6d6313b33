"""Which plan texts do the property tests draw? Every construct, laid out as carelessly as the language allows."""

from __future__ import annotations

from hypothesis import strategies as st

NAMES = st.sampled_from(
    ["a", "lr", "web", "betas", "let", "test", "plan", "error", "zip", "weight_decay", "devices_per_node"]
)
NUMBERS = st.sampled_from(
    ["0", "17", "11_008", "5e-4", "0.95", "85%", "7B", "2.1M", "4Ki", "8GiB", "30min", "989TFLOP/s", "900GB/s"]
)
QUANTITIES = st.sampled_from(["2Mi tokens", "1 sequences", "1 step", "2_000 steps", "12 runs"])
STRINGS = st.sampled_from(
    [
        '""',
        '"a } b # c"',
        '"名前 \\"quoted\\" \\\\"',
        '"runs/${plan.name}/${if a == "b" then "x" else "y"}"',
        '"""\n  several # lines\n"""',
        '"' + "long text " * 12 + '"',
    ]
)
CONSTANTS = st.sampled_from(["true", "false", "none", "auto", "self", "self.dim", "model.heads", "bf16"])
OPERATORS = st.sampled_from(["+", "-", "*", "/", "//", "%", "**", "==", "<=", "in", "and", "or", ".."])
COMMENTS = st.sampled_from(
    ["#", "# plain", "## doc of something", "# it's \"odd { [ (", "# forge: allow no-checkpoint"]
)


@st.composite
def gaps(draw: st.DrawFn) -> str:
    """Space where a line may not end."""
    return draw(st.sampled_from([" ", " ", "  ", "\t"]))


@st.composite
def breaks(draw: st.DrawFn) -> str:
    """Space where a line may end, with a comment or an empty line here and there."""
    style = draw(st.integers(0, 7))
    if style < 4:
        return " "
    if style < 6:
        return "\n" + " " * draw(st.integers(0, 4))
    if style == 6:
        return f"  {draw(COMMENTS)}\n"
    return f"\n\n {draw(COMMENTS)}\n"


@st.composite
def separators(draw: st.DrawFn) -> str:
    """Between the entries of braces."""
    return draw(st.sampled_from([",", ", ", "\n", "\n", "\n\n\n", ",\n"])) + draw(
        st.sampled_from(["", ""]) | COMMENTS.map(lambda c: f"{c}\n")
    )


def scalars() -> st.SearchStrategy[str]:
    return st.one_of(NUMBERS, QUANTITIES, STRINGS, CONSTANTS, NAMES)


@st.composite
def lists(draw: st.DrawFn, values: st.SearchStrategy[str]) -> str:
    items = draw(st.lists(values, max_size=4))
    if not items:
        return "[]"
    comma = draw(st.sampled_from(["", ","]))
    return "[" + draw(breaks()) + ("," + draw(breaks())).join(items) + comma + draw(breaks()) + "]"


@st.composite
def records(draw: st.DrawFn, values: st.SearchStrategy[str]) -> str:
    items = [f"{draw(NAMES)} = {draw(values)}" for _ in range(draw(st.integers(0, 4)))]
    return "{" + draw(breaks()) + "".join(item + draw(separators()) for item in items) + "}"


@st.composite
def compounds(draw: st.DrawFn, values: st.SearchStrategy[str]) -> str:
    one, two, three = draw(values), draw(values), draw(values)
    operator, at_break = draw(OPERATORS), draw(breaks())
    forms = [
        lambda: draw(lists(values)),
        lambda: draw(records(values)),
        lambda: f"adamw {draw(records(values))}",
        lambda: f"({one}) {operator}{at_break}({two})",
        lambda: f"(({one}) {operator} ({two})) {draw(OPERATORS)} ({three})",
        lambda: f"if {one}{at_break}then {two}{draw(breaks())}else {three}",
        lambda: f"[for x in {one} if {two}: {three}]",
        lambda: f"min({one},{at_break}{two})",
        lambda: f"({one})[{two}].{draw(NAMES)}",
        lambda: f"not ({one})",
        lambda: f"-{draw(NAMES)} ** 2",
        lambda: f"a < {draw(NAMES)} <= {draw(NUMBERS)}",
    ]
    return draw(st.sampled_from(forms))()


VALUES = st.recursive(scalars(), compounds, max_leaves=6)


@st.composite
def statements(draw: st.DrawFn) -> str:
    value, name = draw(VALUES), draw(NAMES)
    path = ".".join(draw(st.lists(NAMES, min_size=1, max_size=3)))
    forms = [
        lambda: f"{path}={value}",
        lambda: f"{path} ={draw(gaps())}{value}",
        lambda: f"{path} = {value}",
        lambda: f"{path} += {value}",
        lambda: f"delete {path}",
        lambda: f"let {name} = {value}",
        lambda: f"assert {value}{draw(breaks())}else {draw(STRINGS)}",
        lambda: f"warn {value}",
        lambda: f"eval {name} {draw(records(VALUES))}",
        lambda: f"phase {name} after a, {path} {draw(records(VALUES))}",
    ]
    return draw(st.sampled_from(forms))()


@st.composite
def bodies(draw: st.DrawFn) -> str:
    items = draw(st.lists(statements(), max_size=5))
    comment = draw(st.sampled_from(["", "", "# last\n"]))
    return "{" + draw(breaks()) + "".join(f"{item}{draw(separators())}" for item in items) + comment + "}"


@st.composite
def declarations(draw: st.DrawFn) -> str:
    name = draw(NAMES)
    forms = [
        lambda: 'import "lib/hw.forge" as hw',
        lambda: 'from "std:models" import llama3_8b,\n  debug',
        lambda: f"param {name}: Rate(1e-6 .. 1e-2) = {draw(scalars())}",
        lambda: f"param {name}: List[Int]?",
        lambda: f"let {name}: Tokens = {draw(VALUES)}",
        lambda: f"plan {name} {draw(bodies())}",
        lambda: f"partial plan {name} extends lib.base {draw(bodies())}",
        lambda: f"plan {name} {{ profile smoke {draw(bodies())} }}",
        lambda: (
            f"sweep {name} over base {{ axis lr in {draw(lists(VALUES))}\n zip {{ axis a in 0 .. 2 }}, limit = 2 }}"
        ),
        lambda: f'test "title" for {name} {{ expect {draw(VALUES)}\n expect error FP0412 with {{ mesh.tp = 3 }} }}',
    ]
    return draw(st.sampled_from(forms))()


@st.composite
def plan_texts(draw: st.DrawFn) -> str:
    head = draw(st.sampled_from(["", "# head\n", "\n\n## about\n\n"]))
    parts = draw(st.lists(declarations(), max_size=4))
    gap = [draw(st.sampled_from(["\n", "\n\n\n", "  # behind\n", "\n# above\n"])) for _ in parts]
    return head + "forge 1\n" + "".join(part + after for part, after in zip(parts, gap, strict=True))
