"""What does a project's `forge.toml` say about output?"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path


def output_roots(project: Path) -> tuple[Path, ...]:
    """Folders outside the project that may be written to; none where there is no readable `forge.toml`."""
    settings = project / "forge.toml"
    try:
        return _roots(settings, settings.stat().st_mtime_ns)
    except OSError:
        return ()


@lru_cache(maxsize=16)
def _roots(settings: Path, modified: int) -> tuple[Path, ...]:
    import tomllib

    try:
        roots = tomllib.loads(settings.read_text("utf-8-sig")).get("outputs", {}).get("roots", [])
    except (ValueError, AttributeError, RecursionError):
        return ()
    return tuple(settings.parent / root for root in roots if isinstance(root, str)) if isinstance(roots, list) else ()
