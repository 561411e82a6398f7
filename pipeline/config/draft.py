"""The readable parts of a site file that is wrong elsewhere, so that all its errors can be told at once."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, TypeAdapter, ValidationError

from connectors import SinkConfig, SourceConfig
from pipeline.config.places import bare, is_model, kind_of, members_of, tag_of, tagged
from pipeline.config.site import with_builtins
from pipeline.fields.definition import FieldConfig
from pipeline.stages.route import RouteConfig
from pipeline.stages.rules import RuleConfig


@dataclass(frozen=True, slots=True)
class Draft:
    """What could be read, and the names of everything that was at least begun.

    No config is left out, but each may have holes: an attribute (or list item) that is missing or wrong is
    None, whatever its type says. `given` is the file's own data, `folder` where its relative paths start.
    """

    given: dict[str, Any]
    folder: Path
    sources: dict[str, SourceConfig]
    sinks: dict[str, SinkConfig]
    fields: dict[tuple[str, str], FieldConfig]
    rules: dict[int, RuleConfig]
    routes: dict[int, RouteConfig]
    names: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, given: dict[str, Any], folder: Path) -> Draft:
        data = with_builtins(given)
        return cls(
            given=given,
            folder=folder,
            sources=_readable(SourceConfig, _entries(data, "sources")),
            sinks=_readable(SinkConfig, _entries(data, "sinks")),
            fields=_readable(FieldConfig, _field_entries(data)),
            rules=_readable(RuleConfig, _items(data, "rules")),
            routes=_readable(RouteConfig, _items(data, "routes")),
            names=_names(data),
        )


def _names(data: dict[str, Any]) -> dict[str, frozenset[str]]:
    names = {
        kind: frozenset(name for name, _ in _entries(data, kind))
        for kind in ("sources", "sinks", "profiles", "categories", "actions")
    }
    ids = [item.get("id") for _, item in _items(data, "rules") if isinstance(item, dict)]
    return names | {
        "rules": frozenset(name for name in ids if isinstance(name, str)),
        "fields": frozenset(field for (_, field), _ in _field_entries(data)),
    }


def _entries(data: dict[str, Any], key: str) -> list[tuple[str, Any]]:
    part = data.get(key)
    return list(part.items()) if isinstance(part, dict) else []


def _items(data: dict[str, Any], key: str) -> list[tuple[int, Any]]:
    part = data.get(key)
    return list(enumerate(part)) if isinstance(part, list) else []


def _field_entries(data: dict[str, Any]) -> list[tuple[tuple[str, str], Any]]:
    profiles = [(name, profile) for name, profile in _entries(data, "profiles") if isinstance(profile, dict)]
    return [((name, field), raw) for name, profile in profiles for field, raw in _entries(profile, "fields")]


def _readable(kind: Any, entries: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    read = {key: lenient(kind, raw) for key, raw in entries}
    return {key: config for key, config in read.items() if config is not None}


def lenient(kind: Any, raw: Any) -> Any:
    """`raw` as `kind`, with None in place of everything in it that is missing or wrong."""
    try:
        return _adapter(kind).validate_json(json.dumps(raw), strict=True)
    except ValidationError:
        pass
    kind = bare(kind)
    if isinstance(raw, dict) and tagged(members_of(kind)):
        kind = next((member for member in members_of(kind) if tag_of(member) == raw.get("type")), kind)
    if isinstance(raw, dict) and is_model(kind):
        return _partial(kind, raw)
    arguments = get_args(kind)
    if isinstance(raw, list) and kind_of(kind) is list:
        return [lenient(arguments[0], item) for item in raw]
    if isinstance(raw, dict) and kind_of(kind) is dict:
        return {key: lenient(arguments[-1], item) for key, item in raw.items()}
    return None


def _partial(model: type[BaseModel], raw: dict[str, Any]) -> BaseModel:
    values: dict[str, Any] = {}
    for name, field in model.model_fields.items():
        if name in raw:
            values[name] = lenient(field.rebuild_annotation(), raw[name])
        else:
            values[name] = None if field.is_required() else field.get_default()
    return model.model_construct(_fields_set=set(raw) & set(values), **values)


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
