"""Which words have a meaning of their own? What editors colour, read from where the language itself reads them."""

from __future__ import annotations

from forgeplan.dsl.functions import FUNCTIONS as _FUNCTIONS
from forgeplan.dsl.numbers import MULTIPLIERS as _MULTIPLIERS
from forgeplan.dsl.params import TYPES as _TYPES
from forgeplan.dsl.tokens import RESERVED
from forgeplan.dsl.units import UNITS as _UNITS
from forgeplan.spec.types import AUTO

SELF = "self"
CONSTANTS = ("true", "false", "none", *AUTO.members)
"""Values that are words. `auto` is a member of the fields that take it, and stands out like the others."""

WORD_OPERATORS = ("and", "or", "not", "in")
BRANCHES = tuple(word for word in RESERVED if word not in (*CONSTANTS, *WORD_OPERATORS, SELF))
"""`if then else for`."""

FUNCTIONS = tuple(_FUNCTIONS)
TYPES = (*_TYPES, "OneOf", "List")
MULTIPLIERS = tuple(_MULTIPLIERS)

SUFFIXES = (*MULTIPLIERS, *(unit for unit in _UNITS if unit != "%"))
"""What may stand directly at the digits, `%` apart."""

UNIT_WORDS = tuple(unit for unit in _UNITS if unit.isalpha())
"""What may stand behind a number and a space: `4Ki tokens`."""

NAME, TEXT, NUMBER, BODY, VALUE = "name", "text", "number", "body", "value"

LEADERS = {
    "forge": NUMBER,
    "import": TEXT,
    "from": TEXT,
    "param": NAME,
    "let": NAME,
    "partial": NAME,
    "plan": NAME,
    "profile": NAME,
    "sweep": NAME,
    "axis": NAME,
    "zip": BODY,
    "exclude": VALUE,
    "test": TEXT,
    "expect": VALUE,
    "assert": VALUE,
    "warn": VALUE,
    "delete": NAME,
}
"""Words that begin a statement → what has to follow, for without it the word is a name. The others stand in rules."""
