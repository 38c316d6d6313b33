"""How does an answer grow from ids to text, and where does it end?"""

from __future__ import annotations

from attrs import define, field

from forgeplan.runtime.data.tokenizer.interface import TextStream, Tokenizer


@define
class Answer:
    """An answer as it grows: whole characters only, cut before the first stop text."""

    tokenizer: Tokenizer
    stop: tuple[str, ...]
    text: str = ""
    _stopped: bool = False
    _taken: int = 0
    _stream: TextStream = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._stream = self.tokenizer.stream()

    def has_ended(self) -> bool:
        return self._stopped

    def add(self, token: int) -> None:
        self._grow(self._stream.add(token))

    def finish(self) -> None:
        self._grow(self._stream.end())
        self._stopped = True

    def take(self) -> str:
        """What is certain and was not taken yet: the end may be the beginning of a stop text."""
        held = 0 if self._stopped else max((_overlap(self.text, stop) for stop in self.stop), default=0)
        found = self.text[self._taken : len(self.text) - held]
        self._taken += len(found)
        return found

    def _grow(self, more: str) -> None:
        if self._stopped:
            return
        self.text += more
        places = [self.text.find(stop) for stop in self.stop if stop and stop in self.text]
        if places:
            self.text, self._stopped = self.text[: min(places)], True


def _overlap(text: str, stop: str) -> int:
    """Length of the longest end of `text` that `stop` begins with."""
    return next((n for n in range(min(len(stop) - 1, len(text)), 0, -1) if stop.startswith(text[-n:])), 0)
