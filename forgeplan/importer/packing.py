"""What does a plan need to keep the documents of a sequence apart?"""

from __future__ import annotations

from forgeplan.importer.rules import Importing
from forgeplan.importer.spelling import quoted

FILE = "tokenizer.json"


def pack(this: Importing) -> None:
    """Pack documents; a tokenizer knows the id that ends one, so there must be one."""
    this.draft.set("batch.pack", "true")
    if "tokenizer" in this.draft.root.fields:
        return
    this.draft.set("tokenizer", f"bpe {{ path = {quoted(FILE)} }}", "save the tokenizer here")
    this.assumed.append(f"tokenizer: {FILE} beside the plan, as packing needs the id that ends a document")
