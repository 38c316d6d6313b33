"""Which text is there on every machine? The standard library of the interpreter that runs this."""

from __future__ import annotations

import os
import platform
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from forgeplan.diagnostics.data_codes import FILES
from forgeplan.diagnostics.refusal import Refusal
from forgeplan.runtime.data.documents import DocumentSource
from forgeplan.runtime.data.files import digest_of, read_bytes
from forgeplan.runtime.data.samples import Setting
from forgeplan.runtime.registry import register
from forgeplan.spec.source.built_in import PythonSource

LEFT_OUT = frozenset({"test", "tests", "idle_test", "site-packages", "dist-packages", "__pycache__"})
"""Folders whose modules are tests, or are not the interpreter's own."""


@register.source("python_source", spec=PythonSource)
def open_python_source(spec: PythonSource, setting: Setting) -> DocumentSource:
    files = library_files()
    if not files:
        folder = sysconfig.get_path("stdlib")
        raise Refusal(FILES, f"source `{setting.name}`: this interpreter has no standard library as text in {folder}")

    def texts() -> Iterator[str]:
        for path in files:
            yield _as_text(read_bytes(path, setting))

    digest = digest_of(files, setting)
    origin = f"the standard library of Python {platform.python_version()}"
    return DocumentSource(texts, digest, origin, setting, shuffle=spec.shuffle)


def library_files() -> tuple[Path, ...]:
    """Modules of the standard library, tests left out, sorted by their path in it."""
    library = Path(sysconfig.get_path("stdlib"))
    found: dict[str, Path] = {}
    for folder, folders, names in os.walk(library):
        folders[:] = [name for name in folders if name not in LEFT_OUT]
        here = Path(folder)
        found |= {(here / n).relative_to(library).as_posix(): here / n for n in names if _is_module(here / n)}
    return tuple(found[name] for name in sorted(found))


def _is_module(path: Path) -> bool:
    return path.suffix == ".py" and path.is_file()  # a link that leads nowhere is no file


def _as_text(content: bytes) -> str:
    # A handful of modules may be written in another encoding; as text to learn from, their odd bytes do not matter.
    return content.decode("utf-8", "replace")
