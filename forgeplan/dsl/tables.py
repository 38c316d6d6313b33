"""Where do the parse tables come from? From `grammar/forge.lark`, once, through lark; at run time they are plain data.

`python -m forgeplan.dsl.tables` writes `tables.json` anew. Importing lark and building the tables costs more than
reading any plan, and a pickle in a shared folder is not to be trusted, so the tables ship as JSON; a test holds both
files together.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from attrs import frozen

from forgeplan.resources import resource

_FILE = Path(__file__).with_name("tables.json")
STARTS = ("start", "expr")


@frozen
class Rule:
    """`head` is the nonterminal, `size` the length of the right side, `action` the builder's method.

    The action "" passes the one value on.
    """

    head: str
    size: int
    action: str


@frozen
class Tables:
    """`states[s][symbol]` is the state to shift or go to, or `~r` to reduce by rule r; no entry is an error."""

    rules: tuple[Rule, ...]
    states: tuple[dict[str, int], ...]
    starts: dict[str, int]
    ends: dict[str, int]


@cache
def tables() -> Tables:
    """The tables of the grammar, read once a process."""
    data = json.loads(_FILE.read_text(encoding="utf-8"))
    states = []
    for shifts, reductions in data["states"]:
        state = dict(shifts)
        for rule, symbols in reductions:
            state.update(dict.fromkeys(symbols.split(), ~rule))
        states.append(state)
    return Tables(tuple(Rule(*rule) for rule in data["rules"]), tuple(states), data["starts"], data["ends"])


def generate() -> dict[str, Any]:
    """The content of `tables.json` for the grammar as it stands; the same for every run and hash seed."""
    table, rules = _lark_tables()
    numbers = _numbering(table)
    places = {rule: i for i, rule in enumerate(rules)}
    states = []
    for old in numbers:
        shifts: dict[str, int] = {}
        reductions: dict[int, list[str]] = {}
        for symbol, (action, target) in sorted(table.states[old].items()):
            if action.name == "Shift":
                shifts[symbol] = numbers[target]
            else:
                reductions.setdefault(places[target], []).append(symbol)
        states.append([shifts, [[rule, " ".join(symbols)] for rule, symbols in sorted(reductions.items())]])
    return {
        "rules": [[rule.origin.name, len(rule.expansion), _action(rule)] for rule in rules],
        "states": states,
        "starts": {start: numbers[table.start_states[start]] for start in STARTS},
        "ends": {start: numbers[table.end_states[start]] for start in STARTS},
    }


def _lark_tables() -> tuple[Any, list[Any]]:
    from lark import Lark
    from lark.lexer import Lexer

    class OwnLexer(Lexer):
        __future_interface__ = True

        def __init__(self, configuration: object) -> None:
            pass

        def lex(self, state: object, parser_state: object) -> Iterator[Any]:
            return iter(())

    grammar = resource("grammar/forge.lark").read_text(encoding="utf-8")
    built = Lark(grammar, parser="lalr", lexer=OwnLexer, strict=True, start=list(STARTS))
    rules = sorted(built.rules, key=lambda rule: (rule.origin.name, rule.order))
    return built.parser.parser._parse_table, rules


def _numbering(table: Any) -> dict[int, int]:
    """States in the order in which they are reached, so that numbers do not depend on hashing."""
    order = [table.start_states[start] for start in STARTS]
    for state in order:
        for _, (action, target) in sorted(table.states[state].items()):
            if action.name == "Shift" and target not in order:
                order.append(target)
    return {old: new for new, old in enumerate(order)}


def _action(rule: Any) -> str:
    if rule.alias:
        return str(rule.alias)
    passes_on = rule.options.expand1 and len(rule.expansion) == 1
    return "" if passes_on else str(rule.origin.name)


def main() -> None:
    text = json.dumps(generate(), separators=(",", ":"))
    _FILE.write_text(text.replace('],[{"', '],\n[{"') + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
