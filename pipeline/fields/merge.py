"""All recognisers over one line, made one list.

Equal spans become one candidate with all their types. Two candidates that remain are disjoint, or one lies
wholly inside the other (a host inside host@domain, two numbers inside "750,12000"); they never cross. The
weakest go first when there are too many.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import replace

from pipeline.fields import asset, choice, code, quantity, text, timestamp
from pipeline.fields.definition import Profile
from pipeline.fields.line import Line
from schemas.extraction import Candidate, FieldType, Span

CANDIDATES_MAX = 16  # what a reader can weigh in one pass
_TIME = frozenset({FieldType.TIMESTAMP})  # a weak reading as a time must not borrow the weight of another
_CONSIDERED = (
    96  # strongest candidates whose overlaps are looked at: keeps a line of a thousand numbers linear
)


def candidates(line_text: str, profile: Profile | None = None) -> list[Candidate]:
    """What could be the value of a field, at most CANDIDATES_MAX, in the order of the line."""
    times = sorted(timestamp.recognise(line_text), key=lambda c: c.span)
    readable = [
        c.span
        for c in times
        if (FieldType.TIMESTAMP in c.types and not c.form.startswith("epoch"))
        or c.form in ("uptime", "duration")
    ]
    line = Line(line_text, readable)
    found: list[Candidate] = list(times)
    for recogniser in (quantity, code, asset, choice, text):
        found.extend(recogniser.recognise(line, profile))
    wanted = {config.type for config in profile.fields.values()} if profile is not None else set(FieldType)
    return _chosen(_outside(_united(found), asset.addresses(line_text)), wanted)


def _united(found: Iterable[Candidate]) -> list[Candidate]:
    """One candidate a span: the strongest reading, with the types of all and the unit any of them knows."""
    table: dict[Span, Candidate] = {}
    for candidate in found:
        known = table.get(candidate.span)
        if known is None:
            table[candidate.span] = candidate
            continue
        strong, weak = (candidate, known) if candidate.weight > known.weight else (known, candidate)
        table[candidate.span] = replace(
            strong,
            types=strong.types | (weak.types if weak.weight >= timestamp.PICKED_MIN else weak.types - _TIME),
            unit=strong.unit or weak.unit,
            dimension=strong.dimension or weak.dimension,
            named=strong.named or weak.named,
            bad=strong.bad or weak.bad,
        )
    return list(table.values())


def _chosen(found: list[Candidate], wanted: set[FieldType]) -> list[Candidate]:
    usable = [c for c in found if c.types & wanted]
    usable.sort(key=lambda c: (-c.weight, c.span))
    kept: list[Candidate] = []
    for candidate in usable[:_CONSIDERED]:
        if len(kept) == CANDIDATES_MAX:
            break
        if not any(_crosses(candidate.span, other.span) for other in kept):
            kept.append(candidate)
    return sorted(kept, key=lambda c: c.span)


def _outside(found: list[Candidate], addresses: list[Span]) -> list[Candidate]:
    """Without the pieces of hardware addresses: C4:7D:0B:9A:51:F2 holds no name and 9A no current."""
    starts = [span.start for span in addresses]

    def is_piece(span: Span) -> bool:
        at = bisect_right(starts, span.start)
        return at > 0 and span != addresses[at - 1] and span.end <= addresses[at - 1].end

    return [c for c in found if not is_piece(c.span)] if addresses else found


def _crosses(one: Span, other: Span) -> bool:
    inside = (one.start >= other.start and one.end <= other.end) or (
        other.start >= one.start and other.end <= one.end
    )
    return one.overlaps(other) and not inside
