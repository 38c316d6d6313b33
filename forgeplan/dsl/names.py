"""Which component or field does a bare word name, and what is said when it names none?"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forgeplan.diagnostics.codes import code
from forgeplan.diagnostics.diagnostic import Diagnostic, Edit, Fix, Label, Safety
from forgeplan.diagnostics.span import Span
from forgeplan.diagnostics.suggest import choice, did_you_mean, nearest, ranked
from forgeplan.dsl import syntax
from forgeplan.dsl.library import module_of
from forgeplan.dsl.scope import Scope
from forgeplan.dsl.values import Poison
from forgeplan.dsl.vocabulary import a_kind, all_fields, alternatives, kinds_in_words, members, places_of, structural
from forgeplan.spec import types as t
from forgeplan.spec.registry import component_called, components, kinds_of

if TYPE_CHECKING:
    from forgeplan.dsl.evaluate import Evaluator

UNKNOWN_NAME = code("FP0201", "every reference resolves in its scope; `self` stands where it means something")
NO_COMPONENT = code("FP0210", "the component is registered, under the kind this field takes")
NO_MEMBER = code("FP0311", "an enumerated field takes a member")
WRONG_NODE = code("FP0213", "a reference to an entry of the plan names the right kind")


def component_kind(expected: t.FieldType | None) -> str | None:
    """The kind of component that a field takes, itself or as an item."""
    for a in alternatives(expected) if expected is not None else ():
        if isinstance(a, t.Component):
            return a.kind
        inner = a.item if isinstance(a, t.ListOf) else a.value if isinstance(a, t.MapOf) else None
        if inner is not None and (kind := component_kind(inner)):
            return kind
    return None


def component_named(ev: Evaluator, ref: syntax.NameRef, scope: Scope, expected: t.FieldType | None) -> str | None:
    """The component that a word outside every scope names; None where it may be something else. Raises Poison."""
    kind = component_kind(expected)
    if kind is None:
        is_open = expected is None or structural(expected) is not None
        return ref.name if is_open and kinds_of(ref.name) else None
    if ref.name in components(kind):
        return ref.name
    is_of_plan = ev.plan is not None and ref.name in ev.plan and not component_called(ref.name, kind)
    if ref.name in members(expected) or is_of_plan:
        return None
    if scope.may_declare(ref.name) and not kinds_of(ref.name):
        raise Poison
    raise ev.fault(_no_component(ref, kind, scope))


def _no_component(ref: syntax.NameRef, kind: str, scope: Scope) -> Diagnostic:
    known, alias = list(components(kind)), component_called(ref.name, kind)
    if kinds_of(ref.name) and not alias:
        message = f"`{ref.name}` is {kinds_in_words(ref.name)}, and this takes {a_kind(kind)}"
        return NO_COMPONENT.at(ref.span, message, help=f"known: {choice(known)}")
    if from_library := _from_library(ref):
        return from_library
    meant = alias or nearest(ref.name, [*known, *scope.all_names()])
    fix = replacing(ref.span, meant)
    if meant is not None and meant not in known:
        return UNKNOWN_NAME.at(ref.span, f"nothing here is called `{ref.name}`", help=did_you_mean(meant), fixes=fix)
    helps = [did_you_mean(meant)] if meant else []
    message = f"there is no {kind.replace('_', ' ')} component called `{ref.name}`"
    return NO_COMPONENT.at(ref.span, message, help=[*helps, f"known: {choice(known)}"], fixes=fix)


def _from_library(ref: syntax.NameRef) -> Diagnostic | None:
    """What is said of a name that a `std:` module has, where nothing imports it."""
    module = module_of(ref.name)
    if module is None:
        return None
    help = f'it is one of the library: `from "std:{module}" import {ref.name}`'
    return UNKNOWN_NAME.at(ref.span, f"nothing here is called `{ref.name}`", help=help)


def unknown_name(ref: syntax.NameRef, scope: Scope, expected: t.FieldType | None, plan_names: list[str]) -> Diagnostic:
    """What is said of a bare word that means nothing where it stands."""
    if ref.name == "self":
        return UNKNOWN_NAME.at(ref.span, "`self` stands only in a record, whose fields it reads")
    meant = ranked(ref.name, [*members(expected), *scope.all_names(), *plan_names])
    if from_library := _from_library(ref):
        return from_library
    helps = [f"did you mean {choice(meant)}?"] if meant else []
    if not meant:
        field = ref.name if places_of(ref.name) else nearest(ref.name, all_fields())
        declared = f"declare it: `let {ref.name} = …`, or `param {ref.name}: Type = …` to set it from the command line"
        helps = [f"a field is read by its full path: {choice(places_of(field)[:3])}"] if field else [declared]
    fix = replacing(ref.span, meant[0] if meant else None)
    return UNKNOWN_NAME.at(ref.span, f"nothing here is called `{ref.name}`", help=helps, fixes=fix)


def not_in_map(ref: syntax.NameRef, map: str, entries: list[str], scope: Scope, plan_names: list[str]) -> Diagnostic:
    """What is said of a word that should name an entry of a map of the plan."""
    meant = nearest(ref.name, entries)
    helps = [f"{map} here: {choice(entries)}" if entries else f"the plan has no {map}"]
    if ref.name in plan_names:
        message = f"`{ref.name}` is a part of the plan, and this takes the name of one of `{map}`"
        return WRONG_NODE.at(ref.span, message, help=helps)
    if meant:
        helps.insert(0, did_you_mean(meant))
    message = f"`{map}` has no entry `{ref.name}`"
    return UNKNOWN_NAME.at(ref.span, message, help=helps, fixes=replacing(ref.span, meant))


def not_a_member(path: str, type_: t.FieldType, name: str, span: Span) -> Diagnostic:
    """What is said of a word that an enumeration does not have."""
    known, alias = members(type_), member_called(name, type_)
    meant = alias or nearest(name, known)
    fixes = replacing(span, meant, Safety.SAFE if alias else Safety.ASK)
    numbers = any(isinstance(a, t.Measure | t.Measures) for a in alternatives(type_))
    takes = f"a number or {choice(known)}" if numbers else choice(known)
    helps = [did_you_mean(meant)] if meant else []
    for a in alternatives(type_):
        if isinstance(a, t.OneOf) and name in dict(a.refused):
            helps, fixes = [dict(a.refused)[name]], ()
    return NO_MEMBER.at(span, f"`{path}` takes {takes}, not `{name}`", help=helps, fixes=fixes)


def member_called(word: str, type_: t.FieldType) -> str | None:
    """The member of an enumeration that other tools call so, in any case of letters."""
    aliases = [dict(a.aliases) for a in alternatives(type_) if isinstance(a, t.OneOf)]
    return next((found for known in aliases if (found := known.get(word) or known.get(word.lower()))), None)


def unknown_member(base: str, name: syntax.Name, known: list[str]) -> Diagnostic:
    """What is said of `base.name` where the record has no such member."""
    meant = nearest(name.text, known)
    helps = [did_you_mean(f"{base}.{meant}")] if meant else []
    if not meant and (places := [p for p in places_of(name.text) if p != f"{base}.{name.text}"]):
        helps = [f"`{name.text}` is at {choice(places[:3])}"]
    message = f"`{base}` has no member `{name.text}`"
    return UNKNOWN_NAME.at(Label(name.span), message, help=helps, fixes=replacing(name.span, meant))


def replacing(span: Span, text: str | None, safety: Safety = Safety.ASK) -> tuple[Fix, ...]:
    """The fix that writes another word at a place."""
    return (Fix(f"write `{text}`", (Edit(span, text),), safety),) if text else ()
