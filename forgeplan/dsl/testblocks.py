"""Does a `test` block hold: each `expect`, and each `expect error` with the code it names?"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from attrs import frozen

from forgeplan.diagnostics.codes import code, registered
from forgeplan.diagnostics.diagnostic import Diagnostic, Label, Severity
from forgeplan.diagnostics.suggest import did_you_mean, nearest
from forgeplan.dsl import syntax
from forgeplan.dsl.bindings import declare_values
from forgeplan.dsl.checks import failure, operands_of, truth
from forgeplan.dsl.load import Loaded, deep_recursion
from forgeplan.dsl.values import Poison
from forgeplan.dsl.view import View
from forgeplan.spec.job import Job

EXPECTATION = code("FP0318", "test: each `expect` holds, each `expect error` code exists and is reported")

Check = Callable[[Job], Sequence[Diagnostic]]
_CODE = re.compile(r"\bFP\d{4}\b")


@frozen
class TestResult:
    """A test with the diagnostics that made it fail."""

    __test__ = False  # not a test of pytest

    title: str
    plan: str
    diagnostics: tuple[Diagnostic, ...]

    @property
    def passed(self) -> bool:
        return not self.diagnostics


def run_test(loaded: Loaded, test: syntax.Test, check: Check) -> TestResult:
    """Run a block of a loaded file; `check` is what the compiler finds in a job."""
    title = "".join(part for part in test.title.parts if isinstance(part, str))
    decl = loaded.plans_.find(test.base, loaded.module)
    if decl is None or loaded.plans_.chain(decl.plan.name.text) is None:
        return TestResult(title, test.base.text, tuple(d for d in loaded.diagnostics if d.span == test.base.span))
    plan = decl.plan.name.text
    faults: list[Diagnostic] = []
    view, _ = loaded.varied(plan, None, f'test "{title}"')
    for item in test.items:
        if isinstance(item, syntax.Expect):
            faults += _expect(view, test, item)
        elif isinstance(item, syntax.ExpectError):
            faults += _expect_error(loaded, plan, title, item, check)
    return TestResult(title, plan, tuple(faults))


def _expect(view: View, test: syntax.Test, item: syntax.Expect) -> list[Diagnostic]:
    before = len(view.diagnostics)
    scope = view.stack.chain[-1].module.scope.inside(view.root)
    declare_values(test.items, scope, view.diagnostics.append)
    with deep_recursion():
        try:
            operands = list(operands_of(view, item.condition, scope))
            holds = truth(view, item.condition, scope, operands)
        except Poison:
            return view.diagnostics[before:] or [_not_told(view, item)]
    if holds:
        return []
    text = " ".join(view.ev.text(item.condition.span).split())
    return [failure(view, EXPECTATION, item.condition, f"`expect {text}` does not hold", operands)]


def _not_told(view: View, item: syntax.Expect) -> Diagnostic:
    text = " ".join(view.ev.text(item.condition.span).split())
    message = f"`expect {text}` cannot be told, as the plan has faults in what it reads"
    return EXPECTATION.at(item.condition.span, message, help="`forgeplan lint` shows them")


def _expect_error(loaded: Loaded, plan: str, title: str, item: syntax.ExpectError, check: Check) -> list[Diagnostic]:
    wanted = item.code.text
    known = registered()
    if wanted not in known:
        meant = nearest(wanted, known)
        help = did_you_mean(meant) if meant else "`forgeplan explain CODE` shows a code's page"
        return [EXPECTATION.at(item.code.span, f"there is no code `{wanted}`", help=help)]
    view, job = loaded.varied(plan, item.overrides, f'test "{title}"')
    reported = [d for d in (*view.diagnostics, *check(job)) if d.severity is not Severity.NOTE]
    codes = {code for d in reported for code in (d.code, *_CODE.findall(" ".join(d.notes)))}
    if wanted in codes:
        return []
    found = ", ".join(sorted(codes)) if codes else "nothing"
    labels = [Label(d.span, f"{d.code}: {d.message}") for d in reported[:4] if d.span is not None]
    message = f"`{wanted}` is expected, and {found} is reported"
    return [EXPECTATION.at(item.code.span, message, *labels)]
