"""Which files does a plan file bring in? Relative ones inside the project, and `std:` modules; nothing else."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path

from attrs import Factory, define, field

from forgeplan.diagnostics.codes import code
from forgeplan.diagnostics.diagnostic import Diagnostic, Label
from forgeplan.diagnostics.source import Sources
from forgeplan.diagnostics.span import Span
from forgeplan.diagnostics.suggest import choice, did_you_mean, nearest
from forgeplan.dsl import syntax
from forgeplan.dsl.bindings import declare, declare_values, repeated
from forgeplan.dsl.library import STD
from forgeplan.dsl.parser import parse
from forgeplan.dsl.pins import Pins, name_in_lock
from forgeplan.dsl.references import CYCLE
from forgeplan.dsl.scope import BrokenBinding, ModuleBinding, Scope

NOT_FOUND = code("FP0204", "the imported file or `std:` module exists and exports the name")
OUTSIDE = code("FP0205", "import paths are relative, no URL, and their real path stays inside the project")
TOO_MANY = code("FP0206", "import depth ≤ 16, ≤ 256 files, ≤ 16 MiB together")

MAX_DEPTH = 16
MAX_FILES = 256
MAX_BYTES = 16 * 2**20


@define(eq=False, slots=False)
class PlanDecl:
    """A plan with the module that declares it."""

    plan: syntax.Plan
    module: Module
    is_damaged: bool = False
    """Whether its header could not be read as it stands: what it extends is not known."""

    @cached_property
    def has_lets(self) -> bool:
        return any(isinstance(item, syntax.Let) for item in self.plan.body.items)

    @cached_property
    def checks(self) -> tuple[syntax.Check, ...]:
        return tuple(item for item in self.plan.body.items if isinstance(item, syntax.Check))

    @cached_property
    def profiles(self) -> tuple[syntax.Profile, ...]:
        return tuple(item for item in self.plan.body.items if isinstance(item, syntax.Profile))


@define(eq=False)
class Module:
    """A file as read, with the names it declares."""

    name: str
    path: Path | None
    """The real path; None for a `std:` module."""
    file: syntax.File
    scope: Scope
    plans: dict[str, PlanDecl | None] = Factory(dict)
    """None: declared, but not usable (already reported)."""
    modules: dict[str, Module | None] = Factory(dict)
    """Those imported `as` a name."""

    @property
    def damaged(self) -> bool:
        """Whether a statement could not be read: an unknown name may be declared there."""
        return any(isinstance(item, syntax.ErrorItem) for item in self.file.items)


@define(eq=False)
class Importer:
    """Reads each file once. `unsaved` has texts that an editor holds, by real path; `pins` is the project's lock."""

    project: Path
    sources: Sources
    report: Callable[[Diagnostic], None]
    unsaved: Mapping[str, str] = Factory(dict)
    pins: Pins | None = None
    _loaded: dict[str, Module | None] = Factory(dict)
    _chain: list[tuple[str, Span]] = field(factory=list)
    _bytes: int = 0
    _root: Module | None = None

    def root(self, path: Path, text: str) -> Module:
        """The module of the plan file itself."""
        self._root = self._read(str(real(path)), shown(path), real(path), text, None)
        return self._root

    def _read(self, key: str, name: str, path: Path | None, text: str, span: Span | None) -> Module:
        source = self.sources.add(name, text)
        parsed = parse(source)
        for diagnostic in parsed.diagnostics:
            self.report(diagnostic)
        if span is not None:
            self._check_pin(name, path, text, parsed.file, span)
        folder = self._folder(path) if path is not None else ""
        module = Module(name, path, parsed.file, Scope(folder=folder, unread=unread(parsed.file, text)))
        self._loaded[key] = None
        self._chain.append((name, span or Span(name, 0, 0)))
        self._bytes += len(text)
        faults = [d.span.start for d in parsed.diagnostics if d.span is not None and d.span.file == name]
        self._declare(module, faults)
        self._chain.pop()
        self._loaded[key] = module
        return module

    def _check_pin(self, name: str, path: Path | None, text: str, file: syntax.File, span: Span) -> None:
        if self.pins is None:
            return
        fault = self.pins.fault(name_in_lock(path, name, self.project), text, file, span)
        if fault is not None:
            self.report(fault)

    def imported(self) -> tuple[Module, ...]:
        """Every file that was brought in and could be read, but for the plan file itself."""
        return tuple(module for module in self._loaded.values() if module is not None and module is not self._root)

    def _folder(self, path: Path) -> str:
        relative = os.path.relpath(path.parent, self.project).replace(os.sep, "/")
        return "" if relative == "." else posixpath.normpath(relative)

    # declarations -----------------------------------------------------------------------------------------------------

    def _declare(self, module: Module, faults: list[int]) -> None:
        """Bind what a file declares; `faults` are the places where it could not be read."""
        for item in module.file.items:
            match item:
                case syntax.Import():
                    self._import_as(module, item)
                case syntax.FromImport():
                    self._import_names(module, item)
                case syntax.Plan():
                    damaged = any(item.span.start <= at <= item.body.span.start for at in faults)
                    self._declare_plan(module, item.name, PlanDecl(item, module, damaged))
                case _:
                    declare_values((item,), module.scope, self.report)

    def _declare_plan(self, module: Module, name: syntax.Name, decl: PlanDecl | None) -> None:
        earlier = module.plans.get(name.text)
        if earlier is not None:
            self.report(repeated(name.text, name.span, earlier.plan.name.span))
        else:
            module.plans[name.text] = decl

    def _import_as(self, module: Module, item: syntax.Import) -> None:
        imported = self._load(module, item.source)
        module.modules[item.name.text] = imported
        if imported is None:
            binding: ModuleBinding | BrokenBinding = BrokenBinding(item.name.text, item.name.span)
        else:
            binding = ModuleBinding(item.name.text, item.name.span, imported.scope)
        declare(binding, module.scope, self.report)

    def _import_names(self, module: Module, item: syntax.FromImport) -> None:
        imported = self._load(module, item.source)
        for name in item.names:
            binding = imported.scope.names.get(name.text) if imported else None
            if binding is not None:
                earlier = module.scope.names.get(name.text)
                if earlier is not None and earlier is not binding:
                    self.report(repeated(name.text, name.span, earlier.span))
                else:
                    module.scope.names[name.text] = binding
            elif imported is not None and name.text in imported.plans:
                self._declare_plan(module, name, imported.plans[name.text])
            else:
                known = list(dict.fromkeys([*imported.scope.names, *imported.plans])) if imported is not None else []
                meant = nearest(name.text, known)
                # Where the rest of the file spells the name right, that is no second fault.
                for word in {name.text, meant or name.text} - {other.text for other in item.names if other is not name}:
                    module.scope.names.setdefault(word, BrokenBinding(word, name.span))
                    module.plans.setdefault(word, None)
                if imported is not None and not imported.damaged:
                    self.report(_not_exported(imported, name, known, meant))

    # files ------------------------------------------------------------------------------------------------------------

    def _load(self, importer: Module, source: syntax.Text) -> Module | None:
        written = "".join(p for p in source.parts if isinstance(p, str))
        if any(not isinstance(p, str) for p in source.parts):
            self.report(OUTSIDE.at(source.span, "an import path is a fixed text, without `${…}`"))
            return None
        if written.startswith("std:"):
            return self._load_std(written, source.span)
        path = self._resolve(importer, written, source.span)
        if path is None:
            return None
        return self._once(str(path), shown(path), path, source.span)

    def _load_std(self, written: str, span: Span) -> Module | None:
        name = written.removeprefix("std:")
        known = sorted(p.stem for p in STD.glob("*.forge"))
        if name not in known:
            meant = nearest(name, known)
            help = did_you_mean(f"std:{meant}") if meant else f"there are {choice(f'std:{k}' for k in known)}"
            self.report(NOT_FOUND.at(span, f"there is no module `{written}`", help=help))
            return None
        return self._once(written, written, None, span)

    def _resolve(self, importer: Module, written: str, span: Span) -> Path | None:
        """The real path, if it may be read."""
        if (
            not written
            or "\0" in written
            or "://" in written
            or "\\" in written
            or written.startswith(("/", "~"))
            or ":" in written[:3]
        ):
            help = 'write it relative to this file, such as `"lib/models.forge"`, or as `"std:models"`'
            self.report(OUTSIDE.at(span, f'"{written}" is no relative path', help=help))
            return None
        if importer.path is None:
            self.report(OUTSIDE.at(span, f"`{importer.name}` imports only `std:` modules"))
            return None
        path = real(importer.path.parent / written)
        if not path.is_relative_to(self.project):
            notes = f"the project is {self.project}: the nearest folder above with a forge.toml, else the plan file's"
            self.report(OUTSIDE.at(span, f'"{written}" leads out of the project, to {path}', notes=notes))
            return None
        return path

    def _once(self, key: str, name: str, path: Path | None, span: Span) -> Module | None:
        if key in self._loaded:
            module = self._loaded[key]
            if module is None and any(n == name for n, _ in self._chain):
                self._report_cycle(name, span)
            return module
        if not self._within_bounds(span):
            return None
        text = self._text(key, name, path, span)
        if text is None:
            self._loaded[key] = None
            return None
        return self._read(key, name, path, text, span)

    def _text(self, key: str, name: str, path: Path | None, span: Span) -> str | None:
        if key in self.unsaved:
            return self.unsaved[key]
        file = path or STD / f"{name.removeprefix('std:')}.forge"
        if os.path.exists(file) and not (os.path.isfile(file) or os.path.isdir(file)):  # a pipe would be waited for
            self.report(NOT_FOUND.at(span, f"{name} is no file of text"))
            return None
        try:
            return file.read_bytes().decode("utf-8")
        except UnicodeDecodeError as reason:
            self.report(NOT_FOUND.at(span, f"{name} is not UTF-8 text: byte {reason.start} cannot be read"))
        except OSError:
            near = [p.name for p in file.parent.glob("*.forge")] if file.parent.is_dir() else []
            meant = nearest(file.name, near)
            help = did_you_mean(meant) if meant else f"files there: {choice(sorted(near)[:8])}" if near else ()
            self.report(NOT_FOUND.at(span, f"there is no file {name}", help=help))
        return None

    def _within_bounds(self, span: Span) -> bool:
        reason = ""
        if len(self._chain) > MAX_DEPTH:
            reason = f"imports nest deeper than {MAX_DEPTH}"
        elif len(self._loaded) >= MAX_FILES:
            reason = f"more than {MAX_FILES} files are imported"
        elif self._bytes > MAX_BYTES:
            reason = f"the imported files have more than {MAX_BYTES:,} characters together"
        if reason:
            notes = "the chain: " + " → ".join(name for name, _ in self._chain)
            self.report(TOO_MANY.at(span, reason, notes=notes))
        return not reason

    def _report_cycle(self, name: str, span: Span) -> None:
        names = [n for n, _ in self._chain]
        start = names.index(name)
        edges = [s for _, s in self._chain[start + 1 :]] + [span]
        path = [*names[start:], name]
        labels = [Label(s, f"{a} imports {b}") for s, a, b in zip(edges, path[:-1], path[1:], strict=True)]
        self.report(CYCLE.at(labels[-1], "files import one another: " + " → ".join(path), *labels[:-1]))


def _not_exported(imported: Module, name: syntax.Name, known: list[str], meant: str | None) -> Diagnostic:
    from forgeplan.dsl.names import replacing

    help = did_you_mean(meant) if meant else f"it has {choice(known[:12])}" if known else "it declares nothing"
    message = f"{imported.name} has no `{name.text}`"
    return NOT_FOUND.at(name.span, message, help=help, fixes=replacing(name.span, meant))


def real(path: Path) -> Path:
    """Without symbolic links, if they end somewhere."""
    try:
        return path.resolve()
    except RuntimeError:  # Python before 3.13 says so of links that lead in a circle; reading the file says it then.
        return path.absolute()


def unread(file: syntax.File, text: str) -> tuple[str, ...]:
    """The text of each statement of a file that could not be read, or whose value could not."""
    spans = [item.span for item in file.items if isinstance(item, syntax.ErrorItem)]
    for item in file.items:
        if isinstance(item, syntax.Let) and isinstance(item.value, syntax.ErrorExpr):
            # The name it declares is known, and others may stand behind it.
            spans.append(Span(item.span.file, item.name.span.start, item.span.end))
    return tuple(text[span.start : span.end] for span in spans)


def shown(path: Path) -> str:
    """A path as the reader knows it: relative to the working directory where it lies below."""
    try:
        return str(real(path).relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def project_of(path: Path) -> Path:
    """The nearest folder above a plan file with a forge.toml, else its own folder."""
    folder = real(path).parent
    return next((p for p in (folder, *folder.parents) if (p / "forge.toml").is_file()), folder)
