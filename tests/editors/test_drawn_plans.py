"""Do the grammars hold for plans that nobody would write, laid out as carelessly as the language allows?"""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from forgeplan.editors.rules import Role
from tests.dsl.plan_texts import plan_texts
from tests.editors import test_pygments, test_textmate
from tests.editors.oracle import pieces

drawn = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)


@drawn
@given(plan_texts())
def test_textmate_and_pygments_agree_with_the_language(text: str) -> None:
    textmate, pygments = test_textmate.roles(text), test_pygments.roles(text)
    assert [i for i, c in enumerate(text) if not c.isspace() and textmate[i] != pygments[i]] == []
    for start, end, role in pieces(text):
        seen = {textmate[i] for i in range(start, end) if not text[i].isspace()}
        # What `from` imports on further lines looks like any other name: patterns see one line at a time.
        assert seen == {role} or (role is Role.VARIABLE and seen == {Role.NAME}), text[start:end]
