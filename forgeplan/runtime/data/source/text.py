"""How are plain text files read? Each is a document."""

from __future__ import annotations

from collections.abc import Iterator

from forgeplan.runtime.data.documents import DocumentSource
from forgeplan.runtime.data.files import as_text, digest_of, files_of, read_bytes
from forgeplan.runtime.data.samples import Setting
from forgeplan.runtime.registry import register
from forgeplan.spec.source.files import TextFiles


@register.source("text", spec=TextFiles)
def open_text(spec: TextFiles, setting: Setting) -> DocumentSource:
    files = files_of(spec.path, setting)

    def texts() -> Iterator[str]:
        for path in files:
            yield as_text(read_bytes(path, setting), setting.shown(path), setting)

    return DocumentSource(texts, digest_of(files, setting), spec.path, setting, shuffle=spec.shuffle, files=files)
