"""What the tests of the field types share: candidates by their text, and a context to normalise in."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from pipeline.fields import Context, Profile, candidates
from schemas.extraction import Candidate, FieldType


@pytest.fixture
def berlin() -> Context:
    """A source in Berlin; the line came on a Sunday in summer, at noon UTC."""
    return Context(ZoneInfo("Europe/Berlin"), datetime(2025, 6, 1, 12, 0, tzinfo=UTC))


@pytest.fixture
def offered() -> Callable[..., dict[str, Candidate]]:
    """The candidates of a line by their text; of equal texts the first."""

    def by_text(
        text: str, kind: FieldType | None = None, profile: Profile | None = None
    ) -> dict[str, Candidate]:
        table: dict[str, Candidate] = {}
        for candidate in candidates(text, profile):
            if kind is None or kind in candidate.types:
                table.setdefault(candidate.span.of(text), candidate)
        return table

    return by_text
