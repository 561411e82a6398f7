"""Every limit of the pipeline: its name, its default (sized for a small gateway) and what happens at it."""

from __future__ import annotations

from pydantic import Field

from connectors.base import Strict


class Limits(Strict):
    payload_bytes: int = Field(
        default=1_048_576, ge=1024, description="a larger payload goes to review with its first bytes"
    )
    line_chars: int = Field(
        default=16_384, ge=256, description="a longer line goes to review; it is never cut silently"
    )
    events_per_message: int = Field(
        default=10_000, ge=1, description="a payload with more events goes to review whole"
    )
    json_depth: int = Field(default=64, ge=4, le=256, description="deeper JSON goes to review")
    batch_messages: int = Field(
        default=256, ge=1, le=10_000, description="messages settled in one transaction"
    )
    unread_max: int = Field(default=50_000, ge=1, description="unread events beyond this go to review raw")
    unread_max_wait_s: float = Field(
        default=60.0, gt=0, description="urgent unread events older than this go to review raw"
    )
    patterns_max: int = Field(
        default=100_000, ge=100, description="patterns kept in the book; least recently seen go first"
    )


class ReviewConfig(Strict):
    confidence_min: float = Field(
        default=0.8, ge=0, le=1, description="values read with less confidence are asked of a person"
    )
    keep_h: float = Field(default=24 * 30, gt=0, description="how long resolved items stay in the history")
