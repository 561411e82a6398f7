"""The local ticket board: tickets kept in andon's own store, for plants (and demos) without a ticket system."""

from __future__ import annotations

from typing import Literal

from connectors.base import Strict


class BoardConfig(Strict):
    type: Literal["board"]
