"""How urgent a line looks before anybody has read it: it ranks the unread, and decides nothing."""

from __future__ import annotations

from pipeline.fields import lexicon

# A word of meaning weaker than this ("retry" in passing) does not move a line up.
MEANING_MIN = 0.5


def urgency(text: str) -> int:
    """0 (routine) to 3 (critical): the level that the line states, else the worst that its words mean."""
    stated = lexicon.level(text)
    if stated is not None:
        return stated[0].rank
    found = (
        severity.rank
        for severity, _, weight, _ in lexicon.meaning(text)
        if severity is not None and weight >= MEANING_MIN
    )
    return max(found, default=0)
