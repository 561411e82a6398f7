"""What every normaliser takes and gives."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, tzinfo

from schemas.extraction import Null


@dataclass(frozen=True, slots=True)
class Context:
    """What is known beside the span when a value is normalised.

    `timezone` is the source's zone, `received_at` an aware time: both complete times that lack a zone, a
    date or a year. `unit` is the unit as written beside the span. `form` is the written form
    (`Candidate.form`) and saves looking for it. `convention` settles what one line cannot: "dmy", "mdy" or
    "ymd" for 03/04/2025, "comma" or "point" for the decimal mark of 1,234. It is learnt over the lines of a
    pattern (`timestamp.learn_order`, `number.learn_mark`).
    """

    timezone: tzinfo
    received_at: datetime
    unit: str | None = None
    form: str = ""
    convention: str | None = None


@dataclass(frozen=True, slots=True)
class Normalised:
    """A span, made comparable: a UTC ISO 8601 time, a number in the field's unit, a known code, a name.

    `value` is None exactly when `null` is set, or when `problem` says why the value must not be used:
    out_of_range, unknown_code, unknown_asset, unknown_choice, wrong_unit, bad_time, ambiguous_time,
    bad_number, ambiguous_number, sentinel. A value out of range or unknown is kept, so that a person can be
    shown it.
    """

    value: str | float | None = None
    null: Null | None = None
    problem: str | None = None


def bad(problem: str) -> Normalised:
    """Written, but no value: a sentinel, a dead clock."""
    return Normalised(None, Null.BAD, problem)


def unsure(problem: str) -> Normalised:
    """Written, but it reads two ways: a person decides."""
    return Normalised(None, Null.UNSURE, problem)
