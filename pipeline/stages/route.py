"""route: which sink an alarm's ticket goes to, and from which severity on it becomes one."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from connectors.base import Strict
from pipeline.stages.topics import glob_pattern
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


class Route:
    """One route, ready to be asked."""

    def __init__(self, config: RouteConfig) -> None:
        self.config = config
        self._sources = None if config.sources is None else frozenset(config.sources)
        self._categories = None if config.categories is None else frozenset(config.categories)
        self._assets = None if config.assets is None else tuple(map(glob_pattern, config.assets))

    def takes(self, source: str, category: str | None, names: Sequence[str]) -> bool:
        """`names` are what the asset may be called: an alarm's scope and its subject."""
        return (
            (self._sources is None or source in self._sources)
            and (self._categories is None or category in self._categories)
            and (self._assets is None or any(glob.fullmatch(name) for glob in self._assets for name in names))
        )

    def wants(self, severity: Severity) -> bool:
        """Whether an alarm of this severity becomes a ticket."""
        return severity.rank >= self.config.ticket_from.rank


class Router:
    """The routes, in order."""

    def __init__(self, routes: Sequence[RouteConfig]) -> None:
        self._routes = tuple(Route(config) for config in routes)

    def route(self, source: str, category: str | None, names: Sequence[str]) -> Route | None:
        """The first route whose conditions all hold; None when there is none: such an alarm has no ticket."""
        return next((route for route in self._routes if route.takes(source, category, names)), None)
