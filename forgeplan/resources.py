"""Where do the data files lie: in an installed package, or beside it in a checkout?"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parent
_FOLDERS = {"grammar": "_grammar", "docs/diagnostics": "_diagnostics", "plans": "_plans"}
"""Folder in a checkout → folder inside an installed package."""


def resource(path: str) -> Path:
    """The file or folder `grammar/…`, `docs/diagnostics/…` or `plans/…`; FileNotFoundError if neither place has it."""
    for folder, packaged in _FOLDERS.items():
        if path == folder or path.startswith(folder + "/"):
            for place in (_PACKAGE / (packaged + path[len(folder) :]), _PACKAGE.parent / path):
                if place.exists():
                    return place
    raise FileNotFoundError(f"forgeplan has no data file {path!r}")
