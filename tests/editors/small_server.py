"""A language server that does nothing but note what it is asked: put in the place of `forgeplan` by a test."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def main(folder: Path, words: list[str]) -> None:
    if words != ["lsp"]:
        (folder / "words").write_text(" ".join(words), encoding="utf-8")
        return
    while (message := _read()) is not None:
        with (folder / "noted").open("a", encoding="utf-8") as notes:
            notes.write(json.dumps(message) + "\n")
        if "id" in message:
            asked = message["method"] == "initialize"
            _answer(message["id"], {"capabilities": {"textDocumentSync": 1}} if asked else None)


def _read() -> dict[str, Any] | None:
    length = 0
    while (line := sys.stdin.buffer.readline().strip()) or not length:
        if line.lower().startswith(b"content-length:"):
            length = int(line.split(b":")[1])
        elif not line:
            return None
    found: dict[str, Any] = json.loads(sys.stdin.buffer.read(length))
    return found


def _answer(number: int, result: object) -> None:
    data = json.dumps({"jsonrpc": "2.0", "id": number, "result": result}).encode()
    sys.stdout.buffer.write(b"Content-Length: %d\r\n\r\n%s" % (len(data), data))
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
