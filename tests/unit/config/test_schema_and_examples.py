"""The schema that editors use, and the example files that people start from."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.config import builtin, check, json_schema, load
from pipeline.config.compose import compose

DEPLOY = Path(__file__).parents[3] / "deploy"
EXAMPLES = ["site.example.yaml", "site.minimal.yaml"]

KINDS: dict[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "null": type(None),
}


def problems(schema: dict[str, Any], value: Any, root: dict[str, Any], path: str = "") -> list[str]:
    """What a JSON Schema validator would say, for the keywords that our schema uses."""
    if "$ref" in schema:
        target = root["$defs"][schema["$ref"].removeprefix("#/$defs/")]
        return problems(target, value, root, path)
    for key in ("anyOf", "oneOf"):
        if key in schema:
            told = [problems(option, value, root, path) for option in schema[key]]
            return [] if any(not one for one in told) else min(told, key=len)
    found = _kind(schema, value, path)
    return found or [*_limits(schema, value, path), *_inside(schema, value, root, path)]


def _kind(schema: dict[str, Any], value: Any, path: str) -> list[str]:
    kind = schema.get("type")
    wrong = kind is not None and not isinstance(value, KINDS[kind])
    if wrong or (kind in ("integer", "number") and isinstance(value, bool)):
        return [f"{path}: no {kind}"]
    return []


def _limits(schema: dict[str, Any], value: Any, path: str) -> list[str]:
    rules: dict[str, Callable[[Any], bool]] = {
        "const": lambda limit: value == limit,
        "enum": lambda limit: value in limit,
        "minimum": lambda limit: value >= limit,
        "maximum": lambda limit: value <= limit,
        "exclusiveMinimum": lambda limit: value > limit,
        "minLength": lambda limit: len(value) >= limit,
        "maxLength": lambda limit: len(value) <= limit,
        "minItems": lambda limit: len(value) >= limit,
        "maxItems": lambda limit: len(value) <= limit,
        "minProperties": lambda limit: len(value) >= limit,
        "pattern": lambda limit: re.search(limit, value) is not None,
    }
    return [f"{path}: {key}" for key, holds in rules.items() if key in schema and not holds(schema[key])]


def _inside(schema: dict[str, Any], value: Any, root: dict[str, Any], path: str) -> list[str]:
    found: list[str] = []
    if isinstance(value, list):
        for number, item in enumerate(value):
            found += problems(schema.get("items", {}), item, root, f"{path}/{number}")
    if isinstance(value, dict):
        found += [f"{path}: no {name}" for name in schema.get("required", []) if name not in value]
        for name, item in value.items():
            found += _property(schema, name, item, root, f"{path}/{name}")
    return found


def _property(schema: dict[str, Any], name: str, item: Any, root: dict[str, Any], path: str) -> list[str]:
    if name in schema.get("properties", {}):
        return problems(schema["properties"][name], item, root, path)
    for pattern, inner in schema.get("patternProperties", {}).items():
        if re.search(pattern, name):
            return problems(inner, item, root, path)
    rest = schema.get("additionalProperties", True)
    if isinstance(rest, dict):
        return problems(rest, item, root, path)
    return [] if rest else [f"{path}: unknown"]


def every(node: Any) -> list[dict[str, Any]]:
    """Every mapping inside the schema."""
    if isinstance(node, list):
        return [found for item in node for found in every(item)]
    if isinstance(node, dict):
        return [node, *(found for item in node.values() for found in every(item))]
    return []


def test_every_key_is_described_and_others_are_refused() -> None:
    schema = json_schema()
    assert schema["$schema"].endswith("2020-12/schema") and schema["title"]
    objects = [node for node in every(schema) if isinstance(node.get("properties"), dict) and "type" in node]
    assert len(objects) > 20
    for node in objects:
        assert node["additionalProperties"] is False, node
        for name, key in node["properties"].items():
            assert key.get("description"), (name, key)


def test_every_reference_leads_somewhere() -> None:
    schema = json_schema()
    targets = {node["$ref"] for node in every(schema) if isinstance(node.get("$ref"), str)}
    assert targets <= {f"#/$defs/{name}" for name in schema["$defs"]}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_load_and_fit_the_schema(name: str) -> None:
    path = DEPLOY / name
    site = load(path)
    assert site.sources
    schema = json_schema()
    assert problems(schema, compose(path.read_text(encoding="utf-8"), name).data, schema) == []


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_have_nothing_wrong_but_what_this_machine_lacks(name: str) -> None:
    levels = {(issue.level, issue.path.rpartition(".")[2]) for issue in check(DEPLOY / name)}
    assert {key for level, key in levels if level == "error"} <= {"tls"}
    assert {key for level, key in levels if level == "warning"} <= {"path"}


@pytest.mark.parametrize(
    "text",
    [
        "routs: []",
        "sources: {a: {type: mqtt, topics: [x], qos: 2}}",
        "sources: {a: {type: mqtt, topics: []}}",
        "sources: {a b: {type: stdin}}",
        "rules: [{id: r, when: {above: hot}}]",
        "metrics: {port: 0}",
        "site: 3",
    ],
)
def test_the_schema_refuses_what_loading_refuses(text: str) -> None:
    schema = json_schema()
    assert problems(schema, compose(text, "site.yaml").data, schema)


def test_the_schema_takes_the_built_in_site() -> None:
    schema = json_schema()
    data = builtin().model_dump(mode="json", exclude_none=True)
    assert problems(schema, data, schema) == []
