"""How do the parse tables run over a token list? Token by token, calling the builder at each reduction.

Where the tables have no entry, `Recovery` reports the fault, mends the stack and says with which token to go on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from forgeplan.dsl.builder import Builder
from forgeplan.dsl.tables import tables
from forgeplan.dsl.tokens import SOFT_KINDS, Tokens


class Recovery(Protocol):
    def __call__(self, run: Run, at: int) -> int | None:
        """The index of the token to go on with, or None to give the rest up."""
        ...


class Run:
    """One run of the parser. `states` and `values` are the stack: values[k] is what state k + 1 was reached with.

    `fault_at` is the last token at which recovery was asked for, `guessed_at` the last where it guessed a missing sign.
    """

    def __init__(self, tokens: Tokens, builder: Builder, start: str) -> None:
        self.table = tables()
        self.tokens, self.builder = tokens, builder
        self.states = [self.table.starts[start]]
        self.values: list[Any] = []
        self.fault_at = self.guessed_at = -1
        self._stalled = (-1, 0)
        self._end = self.table.ends[start]
        self._rules: list[tuple[str, int, Callable[[list[Any]], Any] | None]] = [
            (rule.head, rule.size, getattr(builder, rule.action) if rule.action else None) for rule in self.table.rules
        ]

    def parse(self, recover: Recovery) -> Any:
        """The value of the start rule, or None where recovery gave up."""
        table, rules, states, values, kinds = (
            self.table.states,
            self._rules,
            self.states,
            self.values,
            self.tokens.kinds,
        )
        at = 0
        kind = kinds[0]
        while True:
            action = table[states[-1]].get(kind)
            if action is None:
                if kind == "$END" and states[-1] == self._end:
                    return values[-1]
                if kind in SOFT_KINDS and "NAME" in table[states[-1]]:
                    kind = "NAME"
                    continue
                following = recover(self, at)
                if following is None:
                    return None
                at = self._forward(following)
                if at == len(kinds):
                    return None
                kind = kinds[at]
            elif action >= 0:
                states.append(action)
                values.append(at)
                at += 1
                kind = kinds[at]
            else:
                head, size, build = rules[~action]
                if build is None:
                    states.pop()
                elif size:
                    parts = values[-size:]
                    del values[-size:], states[-size:]
                    values.append(build(parts))
                else:
                    values.append(build([]))
                states.append(table[states[-1]][head])

    def feed(self, kind: str, value: int) -> bool:
        """Take one token as if it stood in the text. False, with the stack half reduced, where it does not fit."""
        table = self.table.states
        while True:
            action = table[self.states[-1]].get(kind)
            if action is None:
                if kind not in SOFT_KINDS:
                    return False
                kind = "NAME"
            elif action >= 0:
                self.states.append(action)
                self.values.append(value)
                return True
            else:
                self._reduce(~action)

    def _reduce(self, rule: int) -> None:
        head, size, build = self._rules[rule]
        parts = self.values[len(self.values) - size :]
        del self.values[len(self.values) - size :], self.states[len(self.states) - size :]
        self.values.append(build(parts) if build else parts[0])
        self.states.append(self.table.states[self.states[-1]][head])

    def settle(self) -> None:
        """Do the reductions that are due whatever token comes next."""
        while True:
            due = {action for symbol, action in self.table.states[self.states[-1]].items() if is_terminal(symbol)}
            if len(due) != 1 or min(due) >= 0:
                return
            self._reduce(~due.pop())

    def accepts(self, *kinds: str) -> bool:
        """Whether the tokens of these kinds could come next, one after the other. Changes nothing."""
        table, rules = self.table.states, self.table.rules
        states = list(self.states)
        for kind in kinds:
            while True:
                action = table[states[-1]].get(kind)
                if action is None:
                    if kind not in SOFT_KINDS:
                        return kind == "$END" and states[-1] == self._end
                    kind = "NAME"
                elif action >= 0:
                    states.append(action)
                    break
                else:
                    rule = rules[~action]
                    del states[len(states) - rule.size :]
                    states.append(table[states[-1]][rule.head])
        return True

    def _forward(self, following: int) -> int:
        """The token to go on with: the next one where recovery comes back to a token with no less on the stack.

        Past the last token where there is none, so that reading ends for every text.
        """
        before, depth = self._stalled
        if following == before and len(self.states) >= depth:
            following += 1
        self._stalled = (following, len(self.states))
        return following

    def expected(self) -> set[str]:
        """The kinds of tokens that could come next."""
        return {kind for kind in self.table.states[self.states[-1]] if is_terminal(kind) and self.accepts(kind)}

    def cut(self, size: int) -> None:
        """Drop what is on the stack above its first `size` values."""
        del self.values[size:], self.states[size + 1 :]

    def push(self, head: str, value: Any) -> None:
        """Put the value of a nonterminal on the stack."""
        self.states.append(self.table.states[self.states[-1]][head])
        self.values.append(value)


def is_terminal(symbol: str) -> bool:
    return symbol.isupper()
