"""Which files make the project, as git sees them?"""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def files(*patterns: str) -> list[Path]:
    """Files that are tracked, or new and not ignored, below the root; of `patterns` if any are given. Sorted."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    found = {ROOT / name for name in listed.split("\0") if name}
    return sorted(path for path in found if path.is_file() and not path.is_symlink())
