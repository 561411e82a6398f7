"""HTTP sink: one POST a ticket, JSON from a template that can only use ticket fields and fixed text."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue

from connectors.base import Secret, Strict


class HttpFind(Strict):
    """How to look a ticket up by its key. `{key}` in the url is replaced; a hit is a 200 whose `reference` pointer resolves."""

    url: str
    reference: str = Field(default="/0/id", description="JSON pointer to the reference in the answer")


class HttpSinkConfig(Strict):
    type: Literal["http"]
    url: str
    headers: dict[str, str | Secret] = {}
    body: dict[str, JsonValue] | None = Field(
        default=None, description="JSON template; strings may hold {title}, {body}, {severity}, {fields.NAME} ..."
    )
    reference: str = Field(default="/id", description="JSON pointer to the new ticket's reference in the answer")
    idempotency_header: str | None = Field(
        default="Idempotency-Key", description="header that carries the key; null when the system has none"
    )
    find: HttpFind | None = None
    timeout_s: float = Field(default=15.0, gt=0, le=300, description="deadline over the whole call")
    ca: str | None = None
