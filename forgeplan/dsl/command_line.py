"""What do `--set name=value` and `--set path=value` mean?"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path

from attrs import define, field

from forgeplan.diagnostics.diagnostic import Diagnostic, Label
from forgeplan.diagnostics.source import Sources
from forgeplan.diagnostics.span import COMMAND_LINE, Span
from forgeplan.diagnostics.suggest import choice, did_you_mean, nearest
from forgeplan.dsl import syntax
from forgeplan.dsl.faults import DISAGREE, UNKNOWN_ON_COMMAND_LINE
from forgeplan.dsl.imports import Module
from forgeplan.dsl.layers import COMMAND_LINE_LAYER, Contribution, Group
from forgeplan.dsl.parser import parse_expression
from forgeplan.dsl.scope import Binding, ParamBinding, Scope
from forgeplan.dsl.shapes import OnCommandLine
from forgeplan.dsl.view import override
from forgeplan.dsl.vocabulary import places_of
from forgeplan.spec.plan import Plan
from forgeplan.spec.setting import settings_of

_OVERRIDE = re.compile(r"\s*([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)\s*=(.*)", re.DOTALL)


@define(eq=False)
class CommandLine:
    """Overrides, sorted into params and fields. Their text is the source `<command line>`, one line each."""

    sources: Sources
    params: dict[Binding, tuple[syntax.Expr, Scope]] = field(factory=dict)
    over: list[Contribution] = field(factory=list)

    @classmethod
    def read(
        cls,
        overrides: Sequence[str],
        module: Module,
        project: Path,
        sources: Sources,
        report: Callable[[Diagnostic], None],
    ) -> CommandLine:
        """Sort overrides; what is neither a param of the file nor a field of plans is reported."""
        line = cls(sources)
        whole = "\n".join(overrides)
        sources.add(COMMAND_LINE, whole)
        folder = os.path.relpath(Path.cwd(), project).replace(os.sep, "/")
        scope = module.scope.inside()
        scope.folder = "" if folder == "." else folder
        group = Group(COMMAND_LINE_LAYER)
        start = 0
        for text in overrides:
            line._add(text, start, scope, group, module, report)
            start += len(text) + 1
        return line

    def _add(
        self, text: str, start: int, scope: Scope, group: Group, module: Module, report: Callable[[Diagnostic], None]
    ) -> None:
        match = _OVERRIDE.fullmatch(text)
        if match is None:
            span = Span(COMMAND_LINE, start, start + max(len(text), 1))
            report(UNKNOWN_ON_COMMAND_LINE.at(span, f"`--set {text}` is not of the form `path=value`"))
            return
        names = _names(match[1], start + match.start(1))
        expr = _value(match[2], start + match.start(2), scope.folder)
        span = names[0].span.to(names[-1].span)
        binding = module.scope.names.get(match[1])
        if isinstance(binding, ParamBinding):
            self._set_param(binding, expr, scope, report)
        elif names[0].text in settings_of(Plan):
            self.over.append(override(names, expr, scope, group, span))
        else:
            report(_unknown(names, span, module))

    def _set_param(
        self, binding: ParamBinding, expr: OnCommandLine, scope: Scope, report: Callable[[Diagnostic], None]
    ) -> None:
        earlier = self.params.setdefault(binding, (expr, scope))[0]
        if isinstance(earlier, OnCommandLine) and earlier.text.strip() != expr.text.strip():
            message = f"`{binding.name}` has two values of equal strength: {earlier.text} and {expr.text}"
            report(DISAGREE.at(expr.span, message, Label(earlier.span, earlier.text), help="keep one of the two"))


def _names(path: str, start: int) -> list[syntax.Name]:
    names = []
    for word in path.split("."):
        names.append(syntax.Name(word, span=Span(COMMAND_LINE, start, start + len(word))))
        start += len(word) + 1
    return names


def _value(text: str, start: int, folder: str) -> OnCommandLine:
    """The right side; spaces before it put its spans at their place in the whole text."""
    parsed, diagnostics = parse_expression(" " * start + text, COMMAND_LINE)
    return OnCommandLine(text, parsed, tuple(diagnostics), folder, span=Span(COMMAND_LINE, start, start + len(text)))


def _unknown(names: list[syntax.Name], span: Span, module: Module) -> Diagnostic:
    params = [name for name, binding in module.scope.names.items() if isinstance(binding, ParamBinding)]
    first = names[0].text
    meant = nearest(first, [*params, *settings_of(Plan)])
    rest = "." + ".".join(n.text for n in names[1:]) if len(names) > 1 else ""
    helps = [did_you_mean(f"{meant}{rest}")] if meant else []
    if not meant and len(names) == 1 and (places := places_of(first)):
        helps = [f"as a path: {choice(places[:3])}"]
    if params and not meant:
        helps.append(f"params of this file: {choice(params)}")
    path = ".".join(n.text for n in names)
    return UNKNOWN_ON_COMMAND_LINE.at(
        span, f"`{path}` is neither a param of this file nor a field of a plan", help=helps
    )
