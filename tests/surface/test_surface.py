"""Is every change of what people rely on seen in review?"""

from __future__ import annotations

import pytest

from tests.surface.surface import FOLDER, LISTS


@pytest.mark.parametrize("name", LISTS)
def test_the_list_in_the_tree_is_what_there_is(name: str) -> None:
    written = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    assert written == list(LISTS[name]()), "run `python -m tests.surface.surface`, and look at the difference"
