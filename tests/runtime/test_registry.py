"""Has every component that a plan can name code that runs it?"""

from __future__ import annotations

import pytest

from forgeplan.plan.operations import OPERATIONS
from forgeplan.runtime import registry
from forgeplan.spec.registry import components


@pytest.mark.parametrize("kind", [kind for kind in registry.FOLDERS if kind != "operation"])
def test_every_component_of_the_language_has_an_implementation(kind: str) -> None:
    described = components(kind)
    assert described
    for spec in described.values():
        assert callable(registry.implementation(kind, object.__new__(spec)))


def test_every_operation_has_an_executor() -> None:
    for operation in OPERATIONS.values():
        assert callable(registry.implementation("operation", object.__new__(operation)))
