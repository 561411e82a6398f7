"""How urgent a line looks before anybody has read it: it ranks the unread, and decides nothing."""

from __future__ import annotations

from pipeline.fields import lexicon
from schemas.extraction import Severity

# A word of meaning weaker than this ("retry" in passing) does not move a line up.
MEANING_MIN = 0.5


def urgency(text: str) -> int:
    """0 (routine) to 3 (critical): the level the line states, or what its words mean, whichever is higher."""
    stated = lexicon.level(text)
    ranks = [Severity.INFO.rank if stated is None else stated[0].rank]
    ranks += [
        severity.rank
        for severity, _, weight, _ in lexicon.meaning(text)
        if severity is not None and weight >= MEANING_MIN
    ]
    return max(ranks)
