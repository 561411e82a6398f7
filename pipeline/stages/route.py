"""route: which sink an alarm's ticket goes to, and from which severity on it becomes one."""

from __future__ import annotations

from pydantic import Field

from connectors.base import Strict
from schemas.extraction import Severity


class RouteConfig(Strict):
    """One route; the first whose conditions all hold is taken."""

    id: str = Field(min_length=1, description="name of the route")
    sink: str = Field(description="name of the sink that gets its tickets")
    sources: list[str] | None = Field(default=None, description="only these sources; default: all")
    categories: list[str] | None = Field(default=None, description="only these categories; default: all")
    assets: list[str] | None = Field(default=None, description="names, * as wildcard")
    ticket_from: Severity = Field(
        default=Severity.ERROR, description="lower severities are kept as alarms without a ticket"
    )
