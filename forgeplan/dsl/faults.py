"""What is said about a field that is unknown, missing, repeated or contradictory?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgeplan.diagnostics.codes import code
from forgeplan.diagnostics.diagnostic import Diagnostic, Edit, Fix, Label, Safety
from forgeplan.diagnostics.span import COMMAND_LINE, SCHEMA, Span
from forgeplan.diagnostics.suggest import choice, did_you_mean, nearest
from forgeplan.dsl import syntax
from forgeplan.dsl.bindings import TWICE
from forgeplan.dsl.layers import COMMAND_LINE_LAYER, Contribution
from forgeplan.dsl.names import replacing
from forgeplan.dsl.shapes import NO_TARGET
from forgeplan.dsl.values import Symbol, Value, kind_of
from forgeplan.dsl.vocabulary import a_kind, alternatives, members, places_of
from forgeplan.spec import types as t
from forgeplan.spec.quantity import NUMBER, SECONDS, SHARE, Dimension
from forgeplan.spec.registry import components
from forgeplan.spec.setting import Setting, called, settings_of

if TYPE_CHECKING:
    from forgeplan.dsl.slots import Slot

UNKNOWN_ON_COMMAND_LINE = code(
    "FP0209",
    "plan, profile, sweep or param named by `extends`, `over`, `for` or the command line exists; "
    "the command line holds nothing unknown",
)
NO_FIELD = code("FP0301", "the field exists in this record or component")
MISSING = code("FP0302", "required fields are present, and of fields that exclude one another exactly one")
SET_TWICE = code("FP0303", "a field is set once in a record")
DISAGREE = code("FP0305", "equal strength, equal value: two statements of one layer agree")
DERIVED_ASSIGNED = code("FP0306", "derived values are not assigned")
WRONG_TYPE = code("FP0307", "type and list length fit; nothing is converted silently")


def unknown_field(slot: Slot, block: type, c: Contribution) -> tuple[Diagnostic, str | None]:
    """The message about a name that is no field of the record at `slot`, and the field here that was likely meant."""
    name = c.path[0]
    valid = list(settings_of(block))
    known_as = called(name.text, block)
    elsewhere = [p for p in places_of(name.text) if p.rpartition(".")[0] != slot.path and not known_as]
    is_known = any(p.rpartition(".")[2] != name.text for p in elsewhere)
    # What other tools call a field of another record is no slip of a name of this one.
    meant = known_as or (None if is_known else nearest(name.text, valid))
    others = _others_with(slot, name.text)
    helps: list[str] = []
    fixes: tuple[Fix, ...] = ()
    if meant:
        helps.append(did_you_mean(meant))
        fixes = replacing(name.span, meant)
    if others:
        helps.append(f"`{name.text}` is a field of {others}")
    elif elsewhere:
        home = elsewhere[0].rpartition(".")[0] or "the plan"
        home = f"`{home}`" if home != "the plan" else home
        field = elsewhere[0].rpartition(".")[2]
        known = f"`{name.text}` is" if field == name.text else f"`{name.text}` is called `{field}` here,"
        helps.append(f"{known} a field of {home}: `{elsewhere[0]} = …`")
        if not meant and c.size > 1 and c.span.file != COMMAND_LINE and "NAME" not in elsewhere[0]:
            fixes = (Fix(f"write `{elsewhere[0]}`", (Edit(c.span, elsewhere[0]),)),)
    if not helps:
        helps.append(f"fields here: {choice(valid)}" if valid else "there are no fields here")
    rule = UNKNOWN_ON_COMMAND_LINE if c.layer == COMMAND_LINE_LAYER else NO_FIELD
    return rule.at(name.span, f"{owner(slot)} has no field `{name.text}`", help=helps, fixes=fixes), meant


def _others_with(slot: Slot, name: str) -> str:
    """The components of the same kind that have a field: `the schedule wsd`."""
    if not isinstance(slot.structure, t.Component):
        return ""
    kind = slot.structure.kind
    tags = [tag for tag, block in components(kind).items() if name in settings_of(block)]
    return f"the {kind.replace('_', ' ')} {choice(tags)}" if tags else ""


def owner(slot: Slot) -> str:
    """The record at a slot in words: `mesh`, the optimizer `adamw`, the plan."""
    if not slot.path:
        return "the plan"
    if isinstance(slot.structure, t.Component) and slot.component:
        return f"the {slot.structure.kind.replace('_', ' ')} `{slot.component}`"
    return f"`{slot.path}`"


def derived_assigned(path: str, reads: tuple[str, ...], c: Contribution) -> Diagnostic:
    sources = f"it is computed from {choice(reads)}" if reads else "it follows from the plan's name"
    return DERIVED_ASSIGNED.at(c.span, f"`{path}` is a derived value and cannot be set", help=sources)


def missing(slot: Slot, setting: Setting, place: Span, deleted: Span | None) -> Diagnostic:
    """A required field that nobody writes; `deleted` is where a layer took it away."""
    path = f"{slot.path}.{setting.name}" if slot.path else setting.name
    example = f"for example `{setting.name} = {setting.example}`" if setting.example else ""
    others = (Label(deleted, "deleted here"),) if deleted is not None else ()
    return MISSING.at(place, f"`{path}` is missing: {setting.doc}", *others, help=example or ())


def none_of_group(slot: Slot, settings: list[Setting], place: Span) -> Diagnostic:
    paths = [f"{slot.path}.{s.name}" for s in settings]
    examples = " or ".join(f"`{s.name} = {s.example}`" for s in settings)
    return MISSING.at(place, f"one of {choice(paths)} is missing", help=f"exactly one is written: {examples}")


def several_of_group(slot: Slot, places: list[tuple[str, Span]]) -> Diagnostic:
    paths = [f"{slot.path}.{name}" for name, _ in places]
    (_, first), *others = places
    message = f"exactly one of {choice(paths, 'and')} is written, as the others follow from it"
    labels = (Label(span, f"`{path}`") for path, (_, span) in zip(paths[1:], others, strict=True))
    help = f"drop one; where a base writes it, `delete {paths[0]}`"
    return MISSING.at(Label(first, f"`{paths[0]}`"), message, *labels, help=help)


def repeated_field(slot: Slot, first: Contribution, again: Contribution, is_entry: bool) -> Diagnostic:
    """A field, or an entry of a map, that one body sets twice."""
    a, b = (slot.ev.text(c.expr.span) if c.expr else "" for c in (first, again))
    rule = TWICE if is_entry else SET_TWICE
    verb = "declared" if is_entry else "set"
    message = f"`{slot.path}` is {verb} twice" + ("" if is_entry else f": {_short(a)} and {_short(b)}")
    return rule.at(Label(again.span, _short(b)), message, Label(first.span, _short(a)), help="keep one of the two")


def disagreement(slot: Slot, first: Contribution, other: Contribution, a: str, b: str) -> Diagnostic:
    message = f"`{slot.path}` has two values of equal strength: {a} and {b}"
    help = f"both stand in {first.layer}; keep one of the two"
    return DISAGREE.at(Label(other.span, b), message, Label(first.span, a), help=help)


def absent_entry(slot: Slot, c: Contribution) -> Diagnostic:
    """A statement that reaches into, deletes or extends something that is not there."""
    path = ".".join(filter(None, [slot.path, *(n.text for n in c.path)]))
    if c.operation == "delete":
        return NO_TARGET.at(c.span, f"there is no `{path}` to delete")
    inner = ".".join(n.text for n in c.path)
    help = f"set it as a whole: `{slot.path} = {_example(slot, inner)}`"
    return NO_TARGET.at(c.span, f"`{slot.path}` is none here, so it has no `{inner}`", help=help)


def unknown_entry(slot: Slot, c: Contribution, known: list[str]) -> Diagnostic:
    """A statement that reaches into, or deletes, an entry that the map does not have."""
    name = c.path[0]
    meant = nearest(name.text, known)
    helps = (
        [did_you_mean(f"{slot.path}.{meant}")]
        if meant
        else [f"there: {choice(known, 'and')}" if known else f"`{slot.path}` is empty"]
    )
    item = slot.structure.item if isinstance(slot.structure, t.ListOf) else None
    if (
        isinstance(item, t.Component)
        and name.text in components(item.kind)
        and c.operation == "set"
        and len(c.path) == 2
    ):
        helps = [_adding(slot.path, f"{name.text} {{ {c.path[1].text} = … }}", known, c.layer == COMMAND_LINE_LAYER)]
    rule = UNKNOWN_ON_COMMAND_LINE if c.layer == COMMAND_LINE_LAYER else NO_TARGET
    message = f"`{slot.path}` has no `{name.text}`" + (" to delete" if c.operation == "delete" else "")
    return rule.at(name.span, message, help=helps, fixes=replacing(name.span, meant))


def _adding(path: str, item: str, known: list[str], is_on_command_line: bool) -> str:
    """How a list gets a further item. An override has no `+=`: it says the whole list."""
    if not is_on_command_line:
        return f"add it: `{path} += [{item}]`"
    return (
        f"name it, at its place among {choice(known, 'and')}: `{path}=[…, {item}, …]`"
        if known
        else f"`{path}=[{item}]`"
    )


def not_a_list(slot: Slot, c: Contribution, found: str) -> Diagnostic:
    return NO_TARGET.at(
        c.span, f"`+=` extends a list, and `{slot.path}` is {found}", help=f"`{slot.path} = …` replaces it"
    )


def wrong_kind(slot: Slot, value: Value, whole: Contribution) -> Diagnostic:
    """A value of another sort than the part takes."""
    wanted = wanted_of(slot.type)
    span = whole.expr.span if whole.expr is not None and whole.expr.span.file != SCHEMA else whole.span
    helps: tuple[str, ...] = ()
    helps = (f"for example `{slot.path} = {slot.setting.example}`",) if slot.setting and slot.setting.example else ()
    fixes: tuple[Fix, ...] = ()
    kind = slot.structure.kind if isinstance(slot.structure, t.Component) else ""
    if isinstance(slot.structure, t.Block) and isinstance(value, Symbol):
        helps = helps or _fields_that_take(value.name, slot.path, slot.structure.block)
    if kind and isinstance(value, str) and value in components(kind) and isinstance(whole.expr, syntax.Text):
        helps, fixes = (f"without quotes: `{value}`",), (safe_fix("take the quotes off", span, str(value)),)
    return WRONG_TYPE.at(span, f"`{slot.path}` takes {wanted}, not {kind_of(value)}", help=helps, fixes=fixes)


def _fields_that_take(word: str, path: str, block: type) -> tuple[str, ...]:
    """How a record is written in which a word is the value of a field: `precision = { params = …, compute = bf16 }`."""
    found = [name for name, s in settings_of(block).items() if word in members(s.type)][:2]
    if not found:
        return ()
    inner = ", ".join(f"{name} = {word if name == found[-1] else '…'}" for name in found)
    return (f"a record says it for each of its fields: `{path} = {{ {inner} }}`",)


def wanted_of(type_: t.FieldType | None) -> str:
    """What a field takes, in words."""
    words: list[str] = []
    for a in alternatives(type_) if type_ is not None else ():
        match a:
            case t.Component(kind=kind):
                words.append(a_kind(kind))
            case t.Block():
                words.append("a record `{ … }`")
            case t.MapOf():
                words.append("a map `{ name = … }`")
            case t.ListOf(length=length):
                words.append("a list" if length is None else f"a list of {length} items")
            case t.Nothing():
                words.append("`none`")
            case t.Measure(dimension=dimension, whole=whole):
                words.append("a whole number" if dimension == NUMBER and whole else words_of(dimension))
            case t.Measures(dimensions=dimensions):
                words += map(words_of, dimensions)
            case t.OneOf(members=members):
                words.append(choice(members))
            case _:
                words.append(a.describe() if isinstance(a, t.Bool) else f"a {a.describe()}")
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def words_of(dimension: Dimension) -> str:
    """What is measured, in words."""
    return {NUMBER: "a number", SHARE: "a share (`%`)", SECONDS: "a duration"}.get(dimension, str(dimension))


def _example(slot: Slot, inner: str) -> str:
    return "{ " + inner + " = …, … }" if isinstance(slot.structure, t.Block) else "…"


def _short(text: str, limit: int = 40) -> str:
    text = " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def safe_fix(title: str, span: Span, replacement: str) -> Fix:
    return Fix(title, (Edit(span, replacement),), Safety.SAFE)
