"""Does any configuration, however wrong, end in a plan, a reason or one message?"""

from __future__ import annotations

import random
from copy import deepcopy
from decimal import Decimal
from typing import Any

import pytest

from forgeplan.diagnostics.refusal import UsageError
from forgeplan.diagnostics.source import Source
from forgeplan.dsl.parser import parse
from forgeplan.importer import convert as door
from forgeplan.importer.reading import read
from forgeplan.importer.rules import Options
from tests.importer.test_configs import CONFIGS

JUNK = [
    0, 1, -1, 3, 10**30, True, False, Decimal("0.5"), Decimal("-1e300"), Decimal("nan"), Decimal("inf"), "", "x",
    'a"${b}\n\\', "none", [], [1], ["layers.3"], [[1], {}], {}, {"a": 1}, None,
]  # fmt: skip
FILES = sorted(path for path in CONFIGS.glob("*/*.*"))


def leaves(tables: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
    found = []
    for key, value in tables.items():
        found.append((tables, key))
        if isinstance(value, dict):
            found += leaves(value)
    return found


def converted(name: str) -> door.Imported | None:
    """None where there is one message, which names the file or the table."""
    try:
        return door.convert("", name, Options())
    except UsageError as message:
        if name in str(message) or "deeper" in str(message):
            return None
        raise


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_values_of_any_kind_end_in_a_plan_a_reason_or_a_message(path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(path.stem)
    text = path.read_text(encoding="utf-8")
    for _ in range(20):
        tables = read(text, path.name)
        for _ in range(draw.randint(1, 4)):
            table, key = draw.choice(leaves(tables))
            alike = [value for value in JUNK if type(value) is type(table[key])]
            table[key] = deepcopy(draw.choice(alike if alike and draw.random() < 0.9 else JUNK))
        monkeypatch.setattr(door, "read", lambda *_, given=tables: given)
        made = converted(path.name)
        if made is None:
            continue
        assert (made.text is None) == bool(made.report.refused)
        if made.text is not None:
            assert parse(Source("made", made.text)).diagnostics == []
