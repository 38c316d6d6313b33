"""What does a plan file say? Read it with all it imports, and resolve every plan, profile and sweep cell to a Job."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from attrs import define, field, frozen

from forgeplan.diagnostics.diagnostic import Diagnostic, Label
from forgeplan.diagnostics.refusal import UsageError
from forgeplan.diagnostics.source import Sources
from forgeplan.dsl import syntax
from forgeplan.dsl.assemble import assemble
from forgeplan.dsl.bindings import TWICE
from forgeplan.dsl.command_line import CommandLine
from forgeplan.dsl.evaluate import Evaluator
from forgeplan.dsl.faults import WRONG_TYPE
from forgeplan.dsl.foreign import FP0110
from forgeplan.dsl.givens import statements
from forgeplan.dsl.imports import MAX_BYTES, Importer, Module, PlanDecl, project_of, shown
from forgeplan.dsl.layers import Contribution, Group, contributions_of
from forgeplan.dsl.lockfile import LOCK
from forgeplan.dsl.params import check_declaration, conform, declared_type
from forgeplan.dsl.pins import pins_of
from forgeplan.dsl.plans import Plans
from forgeplan.dsl.scope import Binding, LetBinding, ParamBinding, Scope
from forgeplan.dsl.structure import OUTSIDE_PARAM
from forgeplan.dsl.sweeps import Cell, cells_of
from forgeplan.dsl.values import Poison, Value
from forgeplan.dsl.view import Stack, View
from forgeplan.spec.derived import Derived
from forgeplan.spec.job import Job

_RECURSION = 25_000


@frozen(eq=False)
class Resolved:
    """One view of a plan, with what the language found in it."""

    job: Job
    faults: tuple[Diagnostic, ...]
    unclaimed: tuple[Diagnostic, ...]
    """Faults of defaults, to be shown if nothing else explains why the job is not whole."""
    view: View


@define(eq=False)
class Loaded:
    """A plan file, resolved. Jobs are made when they are asked for and kept."""

    sources: Sources
    module: Module
    project: Path
    derived: Mapping[str, Derived]
    command_line: CommandLine
    plans_: Plans
    profile: str | None
    plan: str | None
    _faults: dict[tuple[object, ...], Diagnostic] = field(factory=dict)
    _resolved: dict[tuple[str, str | None, str | None], Resolved] = field(factory=dict)
    _files: Evaluator | None = None
    _cells: dict[str, list[Cell]] = field(factory=dict)
    _hashes: dict[str, str] = field(factory=dict)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """Every fault of the language, sorted by place and code."""
        return tuple(sorted(self._faults.values(), key=Diagnostic.sort_key))

    @property
    def plans(self) -> tuple[str, ...]:
        """Names of the plans of this file that can run."""
        return tuple(decl.plan.name.text for decl in self._own_plans())

    @property
    def tests(self) -> tuple[syntax.Test, ...]:
        return tuple(item for item in self.module.file.items if isinstance(item, syntax.Test))

    @property
    def jobs(self) -> tuple[Job, ...]:
        """The chosen plan, or all plans, in the chosen profile; then the sweep cells."""
        chosen = [name for name in self.plans if self.plan in (None, name)]
        found = [self.job(name, self.profile) for name in chosen if self._has_profile(name, self.profile)]
        for name in chosen:
            found += [self.job(name, None, cell.name) for cell in self.cells(name)]
        return tuple(found)

    @property
    def views(self) -> tuple[Job, ...]:
        """Every plan in every profile, and every sweep cell: what is checked."""
        found = []
        for name in self.plans:
            if self.plan in (None, name):
                found += [self.job(name, profile) for profile in (None, *self.profiles(name))]
                found += [self.job(name, None, cell.name) for cell in self.cells(name)]
        return tuple(found)

    def profiles(self, plan: str) -> tuple[str, ...]:
        """The profiles of a plan, its own and inherited ones."""
        chain = self.plans_.chain(plan)
        return tuple(dict.fromkeys(p.name.text for decl in chain or () for p in decl.profiles))

    def cells(self, plan: str) -> list[Cell]:
        """The cells of all sweeps over a plan."""
        return self._cells.get(plan, [])

    def job(self, plan: str, profile: str | None = None, cell: str | None = None) -> Job:
        """One view of one plan. Raises KeyError for a plan or cell that does not exist."""
        key = (plan, profile, cell)
        if key not in self._resolved:
            with deep_recursion():
                self._resolved[key] = self._resolve(plan, profile, cell)
        return self._resolved[key].job

    def resolved(self) -> tuple[Resolved, ...]:
        """Every view with its own faults."""
        jobs = {id(job) for job in self.views}
        return tuple(one for one in self._resolved.values() if id(one.job) in jobs)

    def varied(self, plan: str, overrides: syntax.Record | None, layer: str) -> tuple[View, Job]:
        """The plan with further statements, as a test has them; its faults are in the view, not among the file's."""
        stack = self._stack(plan, None, None)
        group = Group(layer)
        extra: list[Contribution] = []
        if overrides is not None:
            extra = contributions_of(overrides.items, self.module.scope.inside(), group, overrides.items)
        with deep_recursion():
            return self._made(stack, self._file_evaluator(), tuple(extra))

    # resolving --------------------------------------------------------------------------------------------------------

    def _resolve(self, plan: str, profile: str | None, cell: str | None) -> Resolved:
        stack = self._stack(plan, profile, cell)
        files = self._file_evaluator()
        extra: tuple[Contribution, ...] = ()
        if cell is not None:
            chosen = next(c for c in self.cells(plan) if c.name == cell)
            extra, files = chosen.over, self._evaluator({**self.command_line.params, **chosen.params})
        view, job = self._made(stack, files, extra)
        for fault in view.diagnostics:
            self._keep(fault, "" if profile is None and cell is None else stack.name)
        return Resolved(job, tuple(view.diagnostics), tuple(view.ev.unclaimed), view)

    def _made(self, stack: Stack, files: Evaluator, extra: tuple[Contribution, ...]) -> tuple[View, Job]:
        view = View(stack.with_more((*extra, *self.command_line.over)), files, self.derived)
        return view, self._assembled(view)

    def _assembled(self, view: View) -> Job:
        stack, files, derived = view.stack, view.files, self.derived
        typed: list[View] = []

        def vary(values: Mapping[str, Any]) -> Job:
            with deep_recursion():
                if not typed:
                    typed.append(View(stack, files, derived))
                return self._assembled(View(stack.with_more(statements(typed[0], values)), files, derived))

        return assemble(view, self.module.name, str(self.project), self._hashes, vary)

    def _stack(self, plan: str, profile: str | None, cell: str | None) -> Stack:
        chain = self.plans_.chain(plan)
        if chain is None:
            raise KeyError(plan)
        return Stack(chain, profile, cell, (), self.plans_.is_damaged(plan))

    def _own_plans(self) -> list[PlanDecl]:
        decls = [d for d in self.module.plans.values() if d is not None and d.module is self.module]
        return [d for d in decls if not d.plan.partial and self.plans_.chain(d.plan.name.text) is not None]

    def _has_profile(self, plan: str, profile: str | None) -> bool:
        return profile is None or profile in self.profiles(plan)

    def _file_evaluator(self) -> Evaluator:
        if self._files is None:
            self._files = self._evaluator(self.command_line.params)
        return self._files

    def _evaluator(self, params: Mapping[Binding, tuple[syntax.Expr, Scope]]) -> Evaluator:
        files = Evaluator(self.sources, self._report)
        files.expects, files.conform = declared_type, conform
        files.given = params
        return files

    # the file as a whole ----------------------------------------------------------------------------------------------

    def _report(self, fault: Diagnostic) -> None:
        self._keep(fault, "")

    def constant(self, name: str) -> Value:
        """The value of a `let` or `param` that this file declares; None where it has none."""
        binding = self.module.scope.names.get(name)
        if isinstance(binding, LetBinding | ParamBinding) and binding.span.file == self.module.name:
            with suppress(Poison):
                return self._file_evaluator().value_of(binding, binding.span)
        return None

    def _keep(self, fault: Diagnostic, view: str) -> None:
        key = (fault.code, fault.message, fault.span)
        if key not in self._faults:
            self._faults[key] = Diagnostic(
                fault.code, fault.message, fault.labels, fault.severity, fault.help, fault.notes, fault.fixes, view=view
            )

    def resolve_all(self) -> None:
        """Evaluate the constants of the file and every view."""
        with deep_recursion():
            files = self._file_evaluator()
            for binding in list(self.module.scope.names.values()):
                check_constant(files, binding, self.module)
            for item in self.module.file.items:
                if isinstance(item, syntax.Sweep):
                    self._resolve_sweep(item)
            self._check_titles()
            for _ in self.views:
                pass

    def _resolve_sweep(self, sweep: syntax.Sweep) -> None:
        decl = self.plans_.find(sweep.base, self.module)
        if decl is None or self.plans_.chain(decl.plan.name.text) is None:
            return
        name = decl.plan.name.text

        def view_of(over: tuple[Contribution, ...], params: Mapping[Binding, tuple[syntax.Expr, Scope]]) -> View:
            stack = self._stack(name, None, None)
            all_params = {**self.command_line.params, **params}
            files = self._evaluator(all_params) if params else self._file_evaluator()
            return View(stack.with_more(over), files, self.derived)

        self._cells.setdefault(name, []).extend(cells_of(sweep, self.module, view_of, self._report))

    def _check_titles(self) -> None:
        seen: dict[str, syntax.Text] = {}
        for test in self.tests:
            self.plans_.find(test.base, self.module)
            title = "".join(p for p in test.title.parts if isinstance(p, str))
            first = seen.setdefault(title, test.title)
            if first is not test.title:
                label = Label(first.span, "first here")
                self._report(
                    TWICE.at(Label(test.title.span, "again here"), f'a test "{title}" is declared twice', label)
                )


def load(
    path: str,
    text: str | None = None,
    *,
    derived: Mapping[str, Derived],
    overrides: Sequence[str] = (),
    profile: str | None = None,
    plan: str | None = None,
    unsaved: Mapping[str, str] = {},
) -> Loaded:
    """Read and resolve a plan file.

    `text` stands for the file's content where it is given; `unsaved` has texts for imported files, by real path.
    `overrides` are `name=value` for params and `path=value` for fields. Raises UsageError if the file cannot be read;
    every other fault is a diagnostic.
    """
    file = Path(path)
    project = project_of(file)
    sources = Sources()
    early: list[Diagnostic] = []
    pins = pins_of(project, shown(project / LOCK), unsaved, sources)
    importer = Importer(project, sources, early.append, unsaved, pins)
    module = importer.root(file, read_text(file) if text is None else text)
    plans = Plans(module, early.append)
    command_line = CommandLine.read(overrides, module, project, sources, early.append)
    loaded = Loaded(sources, module, project, derived, command_line, plans, profile, plan)
    loaded._hashes.update(
        (s.name, sha256(s.text.encode("utf-8", "surrogatepass")).hexdigest())
        for s in sources
        if not s.name.startswith("<")
    )
    plans.check(plan, profile, command_line)
    loaded.resolve_all()
    misfits = {fault.span for fault in loaded.diagnostics if fault.code == WRONG_TYPE.id}
    for fault in early:
        if not (fault.code == FP0110.id and fault.span in misfits):  # Spelt right, the word would not fit either.
            loaded._report(fault)
    return loaded


def read_text(path: Path) -> str:
    """The text of a plan file. Raises UsageError."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
        if len(data) > MAX_BYTES:
            raise UsageError(f"{shown(path)} has more than {MAX_BYTES:,} bytes, so it is no plan file")
        return data.decode("utf-8")
    except FileNotFoundError:
        raise UsageError(f"there is no file {shown(path)}") from None
    except IsADirectoryError:
        raise UsageError(f"{shown(path)} is a folder, not a plan file") from None
    except UnicodeDecodeError as reason:
        raise UsageError(f"{shown(path)} is not UTF-8 text: byte {reason.start} cannot be read") from None
    except OSError as reason:
        raise UsageError(f"{shown(path)} cannot be read: {reason.strerror}") from None


def check_constant(files: Evaluator, binding: Binding, module: Module) -> None:
    """Evaluate a `let` or `param` of the file, so that its faults show even if nobody reads it."""
    if isinstance(binding, LetBinding | ParamBinding) and binding.span.file == module.name:
        check_declaration(files, binding)
        if isinstance(binding, ParamBinding) and binding.param.default is None and binding not in files.given:
            help = f"give it a default, or `--set {binding.name}=…`"
            files.report(OUTSIDE_PARAM.at(binding.span, f"the param `{binding.name}` has no value", help=help))
            return
        with suppress(Poison):
            files.value_of(binding, binding.span)


@contextmanager
def deep_recursion() -> Iterator[None]:
    """Room for `MAX_DEPTH` nested references; Python frames alone, so the C stack does not grow."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(max(before, _RECURSION))
    try:
        yield
    finally:
        sys.setrecursionlimit(before)
