"""`andon bench`: the README's figures, measured again on this machine. One file a bench."""

from __future__ import annotations

from pipeline.bench.figure import Figure, Size
from pipeline.bench.suite import BENCHES, Suite

__all__ = ["BENCHES", "Figure", "Size", "Suite"]
