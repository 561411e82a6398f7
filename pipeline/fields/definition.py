"""What a profile says of a field, and of the labels a decision may take. The reader knows nothing else."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Annotated

from pydantic import Field, model_validator

from connectors.base import Strict
from schemas.extraction import FieldType, Severity


def fold(name: str) -> str:
    """A name for comparing: case and blanks do not count."""
    return "".join(name.split()).casefold()


class KnownCodes(Strict):
    """Known codes from a CSV file with a header row.

    The column `code` is required, `description` and `severity` are optional.
    """

    csv: str = Field(description="the CSV file; relative to the site file")
    column: str = Field(default="code", description="name of the column that holds the codes")


class FieldConfig(Strict):
    """One field of a profile."""

    type: FieldType = Field(description="what kind of value it is, which decides how it is recognised")
    description: str = Field(min_length=1, description="one line; the reader recognises the field by it")
    unit: str | None = Field(default=None, description="the unit values are converted to (quantity only)")
    range: Annotated[list[float], Field(min_length=2, max_length=2)] | None = Field(
        default=None, description="[low, high] in `unit`; outside is refused as out of range"
    )
    known: list[str] | KnownCodes | None = Field(
        default=None, description="the values that exist (codes, assets); others are refused"
    )
    choices: list[str] | None = Field(default=None, description="the allowed words (choice only)")
    required: bool = Field(default=False, description="no ticket without it: such an event goes to review")
    confidence_min: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="read with less confidence, a person is asked; default: review.confidence_min",
    )

    @model_validator(mode="after")
    def _fits_its_type(self) -> FieldConfig:
        if self.unit is not None and self.type is not FieldType.QUANTITY:
            raise ValueError("unit belongs to type quantity; remove it or change the type")
        if self.range is not None and self.type not in (FieldType.QUANTITY, FieldType.NUMBER):
            raise ValueError("range belongs to type quantity or number; remove it or change the type")
        if self.range is not None and self.range[0] >= self.range[1]:
            raise ValueError("range is [low, high] with low < high")
        if (self.choices is not None) != (self.type is FieldType.CHOICE):
            raise ValueError("choices belongs to type choice, which needs it")
        if self.known is not None and self.type not in (FieldType.CODE, FieldType.ASSET):
            raise ValueError("known belongs to type code or asset; for other words use type choice")
        return self

    @cached_property
    def known_values(self) -> frozenset[str]:
        """The known list. One in a CSV file is read with the site file, which puts it here."""
        return frozenset(self.known) if isinstance(self.known, list) else frozenset()

    @cached_property
    def known_folded(self) -> dict[str, str]:
        """The known values by their name without case and blanks; the first of equal ones stands."""
        return {fold(value): value for value in reversed(self.known)} if isinstance(self.known, list) else {}

    def digest(self) -> str:
        """Changes whenever a plan for this field must be taught anew (DESIGN §3, reload).

        `confidence_min` is not part of it: a plan keeps the confidence it was read with, and that is compared
        when the plan is used. So a new threshold holds at once, for known patterns too, and costs no reading.
        """
        return hashlib.sha256(self.model_dump_json(exclude={"confidence_min"}).encode()).hexdigest()[:16]


class Profile(Strict):
    """How lines of one kind are read: the fields, each with name and definition."""

    fields: dict[str, FieldConfig] = Field(min_length=1, description="what is read from a line, by name")

    def confidence_min(self, name: str, default: float) -> float:
        """The least confidence with which field `name` counts as read: its own, else `default`."""
        own = self.fields[name].confidence_min if name in self.fields else None
        return default if own is None else own


class Labels(Strict):
    """The labels of the three decisions: name to one-line description."""

    severities: dict[Severity, str]
    categories: dict[str, str]
    actions: dict[str, str]
