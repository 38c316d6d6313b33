"""Does every feature answer at every place of a text that is cut, mangled or half written?"""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

from forgeplan.lsp.features.completion import completion
from forgeplan.lsp.features.definition import definition
from forgeplan.lsp.features.hover import hover
from forgeplan.lsp.features.inlay_hints import inlay_hints
from forgeplan.lsp.features.references import highlights, references
from forgeplan.lsp.features.rename import CannotRename, prepare_rename, rename
from forgeplan.lsp.features.semantic_tokens import semantic_tokens
from forgeplan.lsp.features.signature_help import signature_help
from forgeplan.lsp.workspace import Documents
from tests.lsp.cursor import PLAN
from tests.lsp.test_rename import LIBRARY, PLANS

PIECES = (
    *(
        "{",
        "}",
        "[",
        "]",
        "(",
        ")",
        '"',
        "=",
        ".",
        "..",
        ",",
        "\n",
        "\r\n",
        "\t",
        " ",
        "${",
        "#",
        "##",
        "%",
        "@",
        "é",
        "𐐀",
    ),
    *("for", "in", "if", "let", "plan", "extends", "import", "from", "as", "eval", "self", "axis", "param", "with"),
    *("mixture", "sources", "lib.", "expect", "error", "delete", "30", "30min"),
)


def mangled(rng: random.Random) -> str:
    text = rng.choice((PLAN, PLANS, LIBRARY))
    for _ in range(rng.randrange(1, 5)):
        start = rng.randrange(len(text))
        text = text[:start] + rng.choice(PIECES) + text[start + rng.choice((0, 0, 1, 3, 20, 100)) :]
    return text


def test_every_feature_answers_everywhere(tmp_path: Path) -> None:
    (tmp_path / "forge.toml").touch()
    (tmp_path / "lib.forge").write_text(LIBRARY)
    workspace = Documents(folders=[tmp_path])
    rng = random.Random(4)
    for number in range(60):
        text = mangled(rng)
        snapshot = workspace.put((tmp_path / "p.forge").as_uri(), number, text)
        inlay_hints(snapshot, 0, len(text))
        data = semantic_tokens(snapshot).data
        assert all(step >= 0 for i in range(0, len(data), 5) for step in data[i : i + 3])
        for at in rng.sample(range(len(text) + 1), 5):
            for feature in (completion, definition, references, highlights, prepare_rename, hover, signature_help):
                feature(snapshot, at, workspace)  # type: ignore[operator]
            with contextlib.suppress(CannotRename):
                rename(snapshot, at, "quite_new", workspace)
