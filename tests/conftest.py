"""Which tests must not run beside one another?"""

from __future__ import annotations

import pytest

POOLS = {"bench", "pools"}
"""Fixtures whose ranks take all cores: two sets of them, each waiting for its slowest rank, would crawl."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests with ranks first, all on one worker."""
    for item in items:
        if POOLS & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.xdist_group("ranks"))
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)
