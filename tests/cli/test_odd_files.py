"""Files that are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from forgeplan.cli.plan_file import Choice
from forgeplan.diagnostics.refusal import UsageError


def test_a_link_to_itself_cannot_be_read(tmp_path: Path) -> None:
    link = tmp_path / "loop.forge"
    link.symlink_to(link)
    with pytest.raises(UsageError, match="cannot be read"):
        Choice(str(link)).analysed({})
