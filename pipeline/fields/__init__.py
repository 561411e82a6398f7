"""The field types: what can be a value (candidates) and what it is worth (normalise). A file a type.

A candidate is a slice of the line. Nothing here writes text: a value that is not in the line cannot come out.
"""

from __future__ import annotations

from pipeline.fields import asset, choice, code, number, quantity, text, timestamp
from pipeline.fields.definition import FieldConfig, Labels, Profile
from pipeline.fields.merge import CANDIDATES_MAX, candidates
from pipeline.fields.values import Context, Normalised
from schemas.extraction import FieldType, Span

__all__ = [
    "CANDIDATES_MAX",
    "Context",
    "FieldConfig",
    "Labels",
    "Normalised",
    "Profile",
    "candidates",
    "normalise",
]


def normalise(line: str, span: Span, config: FieldConfig, context: Context) -> Normalised:
    """What the span is worth as a value of a field defined so. Never raises for odd text."""
    raw = line[span.start : span.end]
    match config.type:
        case FieldType.TIMESTAMP:
            return timestamp.normalise(raw, context)
        case FieldType.QUANTITY:
            return quantity.normalise(raw, config, context, line)
        case FieldType.NUMBER:
            return number.normalise(raw, config, context, line)
        case FieldType.CODE:
            return code.normalise(raw, config, context)
        case FieldType.ASSET:
            return asset.normalise(raw, config, context)
        case FieldType.CHOICE:
            return choice.normalise(raw, config, context)
        case FieldType.TEXT:
            return text.normalise(raw, config, context)
