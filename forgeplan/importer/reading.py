"""What stands in a foreign configuration, key by key, and which program is it for?"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from forgeplan.diagnostics.refusal import UsageError

MAX_BYTES = 1 << 20
"""No such file is longer; a longer one is something else."""
MAX_DEPTH = 32
_SECTIONS = {
    "torchtitan": {"job", "training", "parallelism", "lr_scheduler", "activation_checkpoint", "float8", "experimental"},
    "kempnerforge": {"train", "scheduler", "distributed", "data", "vlm", "vision_encoder", "adapter", "eval"},
}
"""Sections that only one of the two has."""


def read(text: str, name: str) -> dict[str, Any]:
    """The whole file as nested tables. Raises UsageError for what is neither TOML nor JSON."""
    if len(text) > MAX_BYTES:
        raise UsageError(f"{name} has more than {MAX_BYTES:,} characters, so it is no configuration")
    try:
        return _json(text) if text.lstrip("\ufeff \t\r\n").startswith("{") else _toml(text)
    except json.JSONDecodeError as reason:
        raise UsageError(f"{name}:{reason.lineno}:{reason.colno}: this is no JSON: {_lower(reason.msg)}") from None
    except tomllib.TOMLDecodeError as reason:
        raise UsageError(f"{name}: this is no TOML: {_lower(str(reason))}") from None
    except RecursionError:
        raise UsageError(f"{name}: tables are nested too deep") from None
    except ValueError as reason:
        raise UsageError(f"{name}: {_lower(str(reason))}") from None


def _json(text: str) -> dict[str, Any]:
    found = json.loads(text.lstrip("\ufeff"), parse_float=Decimal, parse_constant=_no_constant)
    return dict(found)


def _toml(text: str) -> dict[str, Any]:
    return tomllib.loads(text.lstrip("\ufeff").replace("\r\n", "\n"), parse_float=Decimal)


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is no number")


def _lower(text: str) -> str:
    return text if text[:2].isupper() or text[:3] == "NaN" else text[:1].lower() + text[1:]


def flatten(tables: Mapping[str, Any], at: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """Every key with its value, dotted; tables in a list are counted: `data.datasets[0].path`."""
    if depth > MAX_DEPTH:
        raise UsageError(f"{at.rstrip('.')}: tables are nested deeper than {MAX_DEPTH}")
    for key, value in tables.items():
        if isinstance(value, Mapping):
            yield from flatten(value, f"{at}{key}.", depth + 1)
        elif isinstance(value, list) and value and all(isinstance(item, Mapping) for item in value):
            for i, item in enumerate(value):
                yield from flatten(item, f"{at}{key}[{i}].", depth + 1)
        else:
            yield f"{at}{key}", value


def detect(tables: Mapping[str, Any], name: str) -> str:
    """The format, by its keys. Raises UsageError where they say nothing."""
    keys = set(tables)
    if "model_type" in keys or "architectures" in keys or "hidden_size" in keys:
        return "huggingface"
    scores = {format: len(keys & sections) for format, sections in _SECTIONS.items()}
    best = max(scores, key=lambda format: scores[format])
    if scores[best] == 0 or list(scores.values()).count(scores[best]) > 1:
        known = ", ".join(sorted({*_SECTIONS, "huggingface"}))
        raise UsageError(
            f"{name}: its keys do not tell whose configuration this is\n  help: say it with --from, one of {known}"
        )
    return best
