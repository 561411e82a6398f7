"""What holds without a site file saying so (defaults.yaml beside this file)."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from pipeline.config.compose import compose

ROUTE_ID = "default"  # the route that is there when a site file has none


@cache
def builtins() -> dict[str, Any]:
    """The plain data of defaults.yaml. Shared: not to be changed."""
    text = resources.files(__package__).joinpath("defaults.yaml").read_text(encoding="utf-8")
    return compose(text, "defaults.yaml").data
