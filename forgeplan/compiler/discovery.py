"""How are the parts of a folder found? By being in it: there is no list to forget."""

from __future__ import annotations

import importlib
import pkgutil


def import_all(package: str) -> None:
    """Import every module of a package, so that each declares what it has."""
    folder = importlib.import_module(package)
    for module in pkgutil.iter_modules(folder.__path__):
        importlib.import_module(f"{package}.{module.name}")
