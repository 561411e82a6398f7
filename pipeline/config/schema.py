"""`andon schema`: the site file's JSON Schema, by which editors complete and check it."""

from __future__ import annotations

from typing import Any

from pipeline.config.site import Site

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> dict[str, Any]:
    """JSON Schema 2020-12 of the site file. Every key has a description and unknown keys are refused."""
    schema: dict[str, Any] = _tidy(Site.model_json_schema())
    schema["title"] = "andon site file"
    schema["description"] = "Sources, profiles, rules, routes and sinks of one gateway."
    return {"$schema": DIALECT, **schema}


def _tidy(node: Any) -> Any:
    """Without the titles that pydantic makes of keys ("Keepalive S"), and with maps of names closed."""
    if isinstance(node, list):
        return [_tidy(item) for item in node]
    if not isinstance(node, dict):
        return node
    tidy = {key: _tidy(value) for key, value in node.items() if key != "title" or not isinstance(value, str)}
    if "patternProperties" in tidy:
        tidy.setdefault("additionalProperties", False)
    return tidy
