"""Which files does a path of a plan name?"""

from __future__ import annotations

import glob
from difflib import get_close_matches
from functools import cache
from hashlib import sha256
from pathlib import Path

from forgeplan.diagnostics.data_codes import COLUMNS, FILES
from forgeplan.diagnostics.refusal import Refusal
from forgeplan.runtime.data.samples import Setting


def files_of(pattern: str, setting: Setting) -> tuple[Path, ...]:
    """The files that match a path or glob relative to the project, sorted by name.

    Raises Refusal FP0612 if there is none.
    """
    project = setting.project
    found = [pattern] if (project / pattern).exists() else glob.glob(pattern, root_dir=project, recursive=True)
    files = tuple(project / name for name in sorted(found) if not (project / name).is_dir())
    if files:
        return files
    raise Refusal(
        FILES, f"source `{setting.name}`: no file matches {pattern!r} in {project}", _nearest(pattern, project)
    )


def _nearest(pattern: str, project: Path) -> tuple[str, ...]:
    if (project / pattern).is_dir():
        return (f"{pattern} is a folder; its files are '{pattern.rstrip('/')}/*'",)
    folder = (project / pattern).parent
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    try:
        names = sorted(p.name for p in folder.iterdir() if p.is_file())
    except OSError as error:
        return (f"{folder} cannot be listed: {error.strerror}",)
    near = get_close_matches(Path(pattern).name, names, n=3) or names[:3]
    if not near:
        return (f"{folder} holds no files",)
    return (f"{folder} holds {', '.join(near)}" + (" …" if len(names) > len(near) else ""),)


def read_bytes(path: Path, setting: Setting) -> bytes:
    """The content of a file. Raises Refusal FP0612 if it cannot be read."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise unreadable(path, setting, error) from error


def unreadable(path: Path, setting: Setting, error: OSError) -> Refusal:
    """Refusal FP0612 for a file that is there and cannot be read."""
    message = f"source `{setting.name}`: {setting.shown(path)} cannot be read: {error.strerror or error}"
    return Refusal(FILES, message)


def as_text(content: bytes, where: str, setting: Setting) -> str:
    """UTF-8 as text. Raises Refusal FP0616 with the first byte that is none."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refusal(
            COLUMNS,
            f"source `{setting.name}`: {where} is not UTF-8: "
            f"byte 0x{content[error.start]:02x} at offset {error.start:,}",
            "convert it, for example with `iconv -f latin1 -t utf-8`",
        ) from error


def digest_of(files: tuple[Path, ...], setting: Setting, *more: str) -> str:
    """The hash of the content of files in their order, and of whatever else decides what is read from them."""
    whole = sha256()
    for text in more:
        whole.update(sha256(text.encode()).digest())
    for path in files:
        try:
            facts = path.stat()
            whole.update(_file_digest(path, facts.st_size, facts.st_mtime_ns))
        except OSError as error:
            raise unreadable(path, setting, error) from error
    return whole.hexdigest()[:32]


@cache
def _file_digest(path: Path, num_bytes: int, changed_ns: int) -> bytes:
    """The hash of a file, which is read once in a process: evaluations read what training reads."""
    return sha256(path.read_bytes()).digest()
