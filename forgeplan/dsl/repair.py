"""Where does a missing or wrong bracket belong?"""
from __future__ import annotations
def repair(raw): return raw, []
