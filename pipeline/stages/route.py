"""route: which sink an alarm's ticket goes to, and from which severity on it becomes one."""

from __future__ import annotations

from pydantic import Field

from connectors.base import Strict
from schemas.extraction import Severity


class RouteConfig(Strict):
    """One route; the first whose conditions all hold is taken."""

    id: str
    sink: str
    sources: list[str] | None = None
    categories: list[str] | None = None
    assets: list[str] | None = Field(default=None, description="names, * as wildcard")
    ticket_from: Severity = Field(default=Severity.ERROR, description="lower severities are kept as alarms without a ticket")
