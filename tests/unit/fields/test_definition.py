"""A field's definition: what teaches its plans anew, and how sure a value of it has to be."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from pipeline.fields.definition import FieldConfig, Profile
from schemas.extraction import FieldType

HOT = FieldConfig(type=FieldType.QUANTITY, description="temperature", unit="°C")


@pytest.mark.parametrize(
    "changed",
    [
        {"description": "heat"},
        {"unit": "K"},
        {"range": [0.0, 9.0]},
        {"required": True},
        {"type": FieldType.NUMBER},
    ],
)
def test_a_changed_definition_is_read_anew(changed: dict[str, Any]) -> None:
    assert HOT.model_copy(update=changed).digest() != HOT.digest()


def test_a_new_threshold_leaves_the_plans_standing() -> None:
    assert HOT.model_copy(update={"confidence_min": 0.97}).digest() == HOT.digest()


def test_a_field_without_a_threshold_of_its_own_has_the_sites() -> None:
    own = HOT.model_copy(update={"confidence_min": 0.0})
    profile = Profile(fields={"hot": own, "cold": HOT})
    assert [profile.confidence_min(name, 0.8) for name in ("hot", "cold", "gone")] == [0.0, 0.8, 0.8]


@pytest.mark.parametrize("threshold", [-0.1, 1.1])
def test_a_threshold_is_a_probability(threshold: float) -> None:
    with pytest.raises(ValidationError, match="confidence_min"):
        FieldConfig(type=FieldType.TEXT, description="x", confidence_min=threshold)
