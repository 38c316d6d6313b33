"""Which plan does a name mean, and what does it extend?"""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field

from forgeplan.diagnostics.diagnostic import Diagnostic, Label
from forgeplan.diagnostics.source import Sources
from forgeplan.diagnostics.span import COMMAND_LINE, Span
from forgeplan.diagnostics.suggest import choice, did_you_mean, nearest
from forgeplan.dsl import syntax
from forgeplan.dsl.bindings import repeated
from forgeplan.dsl.command_line import CommandLine
from forgeplan.dsl.faults import UNKNOWN_ON_COMMAND_LINE
from forgeplan.dsl.imports import Module, PlanDecl
from forgeplan.dsl.names import replacing
from forgeplan.dsl.references import CYCLE

NO_SUCH = UNKNOWN_ON_COMMAND_LINE


@define(eq=False)
class Plans:
    """The plans of a file, with their bases."""

    module: Module
    report: Callable[[Diagnostic], None]
    _chains: dict[PlanDecl, tuple[PlanDecl, ...] | None] = field(factory=dict)
    _damaged: set[PlanDecl] = field(factory=set)
    _reported: set[tuple[str, Span]] = field(factory=set)

    def chain(self, name: str) -> tuple[PlanDecl, ...] | None:
        """The plan with its bases, oldest first; None if there is no such plan or the bases form a cycle."""
        decl = self.module.plans.get(name)
        return self._chain(decl) if decl is not None else None

    def is_damaged(self, name: str) -> bool:
        """Whether a base of the plan is unknown."""
        chain = self.chain(name)
        return chain is None or any(decl in self._damaged for decl in chain)

    def find(self, path: syntax.Path, module: Module) -> PlanDecl | None:
        """The plan that a path names in a module; an unknown one is reported."""
        *above, last = path.names
        home: Module | None = module
        for name in above:
            if home is None or name.text not in home.modules:
                self._unknown(path, list(home.modules) if home else [])
                return None
            home = home.modules[name.text]
        if home is None or (last.text in home.plans and home.plans[last.text] is None):
            return None
        found = home.plans.get(last.text)
        if found is None and not home.damaged:
            self._unknown(path, list(home.plans))
        return found

    def _unknown(self, path: syntax.Path, known: list[str]) -> None:
        last = path.names[-1]
        if (path.text, path.span) in self._reported:
            return
        self._reported.add((path.text, path.span))
        meant = nearest(last.text, known)
        help = did_you_mean(meant) if meant else f"plans here: {choice(known)}" if known else "there is no plan here"
        self.report(
            NO_SUCH.at(path.span, f"there is no plan `{path.text}`", help=help, fixes=replacing(last.span, meant))
        )

    def _chain(self, decl: PlanDecl) -> tuple[PlanDecl, ...] | None:
        order: list[PlanDecl] = []
        at: PlanDecl | None = decl
        known: tuple[PlanDecl, ...] | None = ()
        while at is not None:
            if at in self._chains:
                known = self._chains[at]
                break
            if at in order:
                self._cycle(order[order.index(at) :])
                known = None
                break
            order.append(at)
            base = self.find(at.plan.base, at.module) if at.plan.base is not None else None
            if at.is_damaged or (at.plan.base is not None and base is None):
                self._damaged.add(at)
            at = base
        for one in reversed(order):
            known = (*known, one) if known is not None else None
            self._chains[one] = known
        return self._chains[decl]

    def _cycle(self, around: list[PlanDecl]) -> None:
        names = [d.plan.name.text for d in around]
        labels = [
            Label(d.plan.base.span, f"`{a}` extends `{b}`")
            for d, a, b in zip(around, names, names[1:] + names[:1], strict=True)
            if d.plan.base is not None
        ]
        message = "plans extend one another: " + " → ".join([*names, names[0]])
        self.report(CYCLE.at(labels[0], message, *labels[1:]))

    def check(self, plan: str | None, profile: str | None, command_line: CommandLine) -> None:
        """Report repeated profiles, and what the command line names that does not exist."""
        for name, decl in self.module.plans.items():
            if decl is not None and decl.module is self.module:
                self._check_profiles(decl)
                self.chain(name)
        self._check_sweeps()
        known = [n for n, d in self.module.plans.items() if d is not None and not d.plan.partial]
        if plan is not None and plan not in known and not self.module.damaged:
            self._not_there(command_line.sources, "plan", plan, known)
        if plan is not None and plan not in known:
            return
        profiles = [p for n in known if plan in (None, n) for p in self._profiles(n)]
        if profile is not None and profile not in profiles and known:
            self._not_there(command_line.sources, "profile", profile, profiles)

    def _profiles(self, name: str) -> list[str]:
        return list(dict.fromkeys(p.name.text for decl in self.chain(name) or () for p in decl.profiles))

    def _check_profiles(self, decl: PlanDecl) -> None:
        seen: dict[str, Span] = {}
        for profile in decl.profiles:
            first = seen.setdefault(profile.name.text, profile.name.span)
            if first is not profile.name.span:
                self.report(repeated(profile.name.text, profile.name.span, first))

    def _check_sweeps(self) -> None:
        seen: dict[str, Span] = {}
        for item in self.module.file.items:
            if isinstance(item, syntax.Sweep):
                first = seen.setdefault(item.name.text, item.name.span)
                if first is not item.name.span:
                    self.report(repeated(item.name.text, item.name.span, first))

    def _not_there(self, sources: Sources, kind: str, name: str, known: list[str]) -> None:
        meant = nearest(name, known)
        help = (
            did_you_mean(meant)
            if meant
            else f"{kind}s here: {choice(dict.fromkeys(known))}"
            if known
            else f"the file has no {kind}"
        )
        text = f"--{kind} {name}"
        start = _appended(sources, text) + len(kind) + 3
        span = Span(COMMAND_LINE, start, start + len(name))
        self.report(NO_SUCH.at(span, f"there is no {kind} `{name}`", help=help))


def _appended(sources: Sources, text: str) -> int:
    """Add a line to the text of the command line; returns where it starts."""
    source = sources.get(COMMAND_LINE)
    before = source.text + "\n" if source is not None and source.text else ""
    sources.add(COMMAND_LINE, before + text)
    return len(before)
