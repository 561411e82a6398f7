"""The policy of reading: which lines of a pattern are read, and what comes of it.

A pattern costs at most READINGS readings to be learnt, whatever the number of its lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from pipeline.fields import Labels, Profile
from pipeline.patterns.agree import READINGS, Reading, combine, recall
from pipeline.patterns.lesson import Lesson, Taught, Trust
from pipeline.patterns.plan import Plan
from pipeline.patterns.signature import Signature, line_digest, sign
from schemas.extraction import Verdict

LOOKED_AT = 64  # lines of a group that representatives are chosen from


class Reader(Protocol):
    """Reads lines: the part of pipeline.model.runtime.Reader that teaching needs."""

    @property
    def name(self) -> str: ...

    def read(self, texts: Sequence[str], profile: Profile, labels: Labels) -> list[Verdict]: ...


def study(
    texts: Iterable[str], profile: Profile, labels: Labels, reader: Reader, taught: Taught | None = None
) -> Lesson | None:
    """What lines of one pattern and variant teach, read by `reader`; None: nothing (more) to read.

    Without `taught`, up to READINGS distinct lines are read and make a new lesson. A provisional one is
    checked on as many as are still wanted. Fields of the profile that a taught plan does not know are read
    anew, while the rest of it stands. Raises what the reader raises.
    """
    if taught is None:
        readings = _read(representatives(texts, READINGS), profile, labels, reader)
        return combine(readings, profile, reader.name) if readings else None
    lesson = taught.lesson
    if taught.plan.stale_fields(profile):
        return _refresh(_read(representatives(texts, READINGS), profile, labels, reader), profile, lesson)
    if taught.trust is not Trust.PROVISIONAL:
        return None
    chosen = representatives(texts, READINGS - lesson.agreed, lesson.checked)
    return _check(_read(chosen, profile, labels, reader), profile, lesson)


def representatives(texts: Iterable[str], count: int, known: frozenset[bytes] = frozenset()) -> list[str]:
    """Up to `count` distinct lines: the first, and then each time the one most unlike those chosen."""
    distinct: dict[str, tuple[str, ...]] = {}
    for seen, text in enumerate(texts):
        if seen >= LOOKED_AT:
            break
        if text not in distinct and line_digest(text) not in known:
            distinct[text] = _values(text, sign(text))
    chosen: list[str] = []
    while len(chosen) < min(count, len(distinct)):
        left = (text for text in distinct if text not in chosen)
        chosen.append(max(left, key=lambda text: _unlike(distinct[text], [distinct[c] for c in chosen])))
    return chosen


def _values(text: str, signature: Signature) -> tuple[str, ...]:
    bounds = signature.bounds
    return tuple(text[bounds[i] : bounds[i + 1]] for i in range(0, len(bounds), 2))


def _unlike(values: Sequence[str], others: Sequence[Sequence[str]]) -> int:
    """Slots in which a line differs from the likest of the others; other lengths count double."""
    return min(
        (sum((a != b) + (len(a) != len(b)) for a, b in zip(values, other, strict=False)) for other in others),
        default=0,
    )


def _read(texts: Sequence[str], profile: Profile, labels: Labels, reader: Reader) -> list[Reading]:
    if not texts:
        return []
    verdicts = reader.read(texts, profile, labels)
    return [Reading(text, sign(text), verdict) for text, verdict in zip(texts, verdicts, strict=True)]


def _check(readings: Sequence[Reading], profile: Profile, lesson: Lesson) -> Lesson | None:
    """The lesson after more readings. Unless they say something new, it is the old one, only more trusted."""
    if not readings:
        return None
    prior = recall(lesson, readings[0].text, readings[0].signature)
    together = combine([prior, *readings], profile, lesson.taught_by)
    checked = lesson.checked | together.checked
    if together.trust is Trust.DISPUTED or _news(together, lesson):
        return replace(together, clears=lesson.clears, checked=checked)
    return replace(lesson, trust=together.trust, agreed=together.agreed, checked=checked)


def _news(new: Lesson, old: Lesson) -> bool:
    """Whether the new lesson settles a field or a decision that the old one had left open."""
    labels = [(lesson.severity.label, lesson.category.label, lesson.action.label) for lesson in (new, old)]
    places = [
        {name: (how.place, how.null) for name, how in lesson.plan.fields.items()} for lesson in (new, old)
    ]
    return labels[0] != labels[1] or places[0] != places[1]


def _refresh(readings: Sequence[Reading], profile: Profile, lesson: Lesson) -> Lesson | None:
    """The lesson with its stale fields read anew. What a person said of the others stands."""
    if not readings:
        return None
    anew = combine(readings, profile, lesson.taught_by)
    stale = lesson.plan.stale_fields(profile)
    source = {name: anew.plan if name in stale else lesson.plan for name in profile.fields}
    fields = {name: plan.fields[name] for name, plan in source.items()}
    still = {name for name in lesson.unsure if name not in lesson.plan.fields or name not in stale}
    unsure = [*still, *(name for name in anew.unsure if name in stale)]
    trust = lesson.trust if lesson.by_person or anew.trust is Trust.TRUSTED else anew.trust
    plan = Plan(fields, lesson.plan.slots, lesson.plan.reader)
    return replace(
        lesson, plan=plan, trust=trust, agreed=anew.agreed, unsure=tuple(sorted(unsure)), checked=anew.checked
    )
