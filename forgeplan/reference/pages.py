"""Which text is the schema in each of its formats?"""

from __future__ import annotations


def page(format: str) -> str:
    """The schema of plans as "json", "markdown" or "html". Raises KeyError for another format."""
    return {"json": _json, "markdown": _markdown, "html": _html}[format]()


def _json() -> str:
    from forgeplan.plan.codec import layout
    from forgeplan.reference.json_schema import json_schema

    return layout(json_schema()) + "\n"


def _markdown() -> str:
    from forgeplan.reference.markdown import markdown

    return markdown()


def _html() -> str:
    from forgeplan.reference.html import html

    return html()
