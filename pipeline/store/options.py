"""Where the store lies and how long it remembers."""

from __future__ import annotations

from pydantic import Field

from connectors.base import Strict


class StoreConfig(Strict):
    path: str = Field(default="andon.db", description="SQLite database file; relative to the site file")
    socket: str | None = Field(
        default=None, description="unix socket for commands; default: beside the store"
    )
    free_floor_mb: int = Field(
        default=64, ge=0, description="below this much free disk nothing is accepted any more"
    )


class RetentionConfig(Strict):
    hours: float = Field(default=168, gt=0, description="raw messages and history are kept this long")
    bytes: int = Field(
        default=2_000_000_000, ge=1_000_000, description="and at most this many bytes of raw messages"
    )
