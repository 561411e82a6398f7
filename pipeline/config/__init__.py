"""The site file: its model, loading it with every error at its line, checks, and the schema for editors."""

from __future__ import annotations

from pipeline.config.codes import Code
from pipeline.config.loading import builtin, load, loads
from pipeline.config.remarks import check
from pipeline.config.schema import json_schema
from pipeline.config.site import MetricsConfig, Site, SourceView

__all__ = [
    "Code",
    "MetricsConfig",
    "Site",
    "SourceView",
    "builtin",
    "check",
    "json_schema",
    "load",
    "loads",
]
