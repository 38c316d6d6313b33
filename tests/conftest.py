"""Which tests have the cores for themselves, and what do all of them take for granted?"""

from __future__ import annotations

import signal

import pytest

POOLS = {"bench", "pools"}
"""Fixtures whose ranks take all cores: beside another set of them, each waiting for its slowest rank, they crawl."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if POOLS & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.ranks)


def pytest_configure() -> None:
    """Let commands hear Ctrl-C also where a shell started the tests in the background, deaf to it."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
