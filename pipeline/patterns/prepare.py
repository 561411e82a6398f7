"""A profile made ready for reading lines: digests of its fields, and normalisers with all that a pattern
settles filled in.

Both are shared by every plan, since the patterns of a plant agree in most of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from pipeline.fields import Context, FieldConfig, Normalised, Profile, normalise, timestamp
from schemas.extraction import FieldType, Span

NUMERIC = frozenset({FieldType.QUANTITY, FieldType.NUMBER})

Normaliser = Callable[[str, int, int, Context], Normalised]
"""What text[start:end] is worth."""

# A number that reads one way, whatever else stands in the line: 1.234 may be a thousand or a one.
_PLAIN_NUMBER = re.compile(r"[-+]?[0-9]+(?:\.[0-9]{1,2}|\.[0-9]{4,})?")
_MEMO_MAX = 4096  # values remembered for each way of reading: measurements and names repeat
_PROFILES_MAX = 64


@dataclass(frozen=True, slots=True)
class Convention:
    """What a pattern settles about a value: unit as written, a time's form, decimal mark or date order."""

    unit: str | None = None
    form: str = ""
    order: str | None = None


@dataclass(frozen=True, slots=True)
class Prepared:
    profile: Profile
    digests: dict[str, str]
    _normalisers: dict[tuple[str, Convention], Normaliser] = field(default_factory=dict)

    def normaliser(self, name: str, convention: Convention) -> Normaliser:
        """How values of the field `name` are read where that convention holds."""
        found = self._normalisers.get((name, convention))
        if found is None:
            config = self.profile.fields[name]
            make = _of_times if config.type is FieldType.TIMESTAMP else _of_values
            found = self._normalisers[name, convention] = make(config, convention)
        return found


_known: dict[int, Prepared] = {}


def prepared(profile: Profile) -> Prepared:
    """Kept while the profile is in use: working out digests takes as long as reading a line."""
    known = _known.get(id(profile))
    if known is not None and known.profile is profile:
        return known
    if len(_known) >= _PROFILES_MAX:
        _known.clear()
    found = Prepared(profile, {name: config.digest() for name, config in profile.fields.items()})
    _known[id(profile)] = found
    return found


def _of_values(config: FieldConfig, convention: Convention) -> Normaliser:
    memo: dict[str, Normalised] = {}
    steady = config.type not in NUMERIC  # a name's or a code's worth depends on nothing but itself

    def worth(text: str, start: int, end: int, context: Context) -> Normalised:
        raw = text[start:end]
        known = memo.get(raw)
        if known is not None:
            return known
        full = Context(context.timezone, context.received_at, convention.unit, "", convention.order)
        found = normalise(text, Span(start, end), config, full)
        if (steady or _PLAIN_NUMBER.fullmatch(raw)) and len(memo) < _MEMO_MAX:
            memo[raw] = found
        return found

    return worth


def _of_times(config: FieldConfig, convention: Convention) -> Normaliser:
    """Times rarely repeat, but in a burst they do: the last one is remembered, for lines of one Context."""
    last: tuple[str, Context, Normalised] | None = None

    def worth(text: str, start: int, end: int, context: Context) -> Normalised:
        nonlocal last
        raw = text[start:end]
        before = last
        if before is not None and before[0] == raw and before[1] is context:
            return before[2]
        epoch = convention.form.startswith("epoch")
        form = "" if epoch and timestamp.form_of(raw) != convention.form else convention.form
        full = Context(context.timezone, context.received_at, None, form, convention.order)
        found = timestamp.normalise(raw, full)
        last = raw, context, found
        return found

    return worth
