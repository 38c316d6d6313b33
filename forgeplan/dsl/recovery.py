"""How does parsing go on behind a fault?"""
from __future__ import annotations
def recover(run, at):
    t=run.tokens
    return None
