"""Which tests have the cores for themselves?"""

from __future__ import annotations

import pytest

POOLS = {"bench", "pools"}
"""Fixtures whose ranks take all cores: beside another set of them, each waiting for its slowest rank, they crawl."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if POOLS & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.ranks)
