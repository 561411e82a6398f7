"""Fills a JSON template with a ticket: fixed text and ticket fields, and nothing else.

`{title}` stands for a field of the ticket, `{fields.temperature}` for one of its extracted fields; `{{` and
`}}` are braces. There are no expressions, attributes, formats or keys made of values, so that log text in a
ticket cannot do anything but stand there. A string that is one placeholder and nothing more keeps its value's
type: "{occurrences}" becomes a number, "{evidence}" an object, and a field that the ticket does not have
becomes null. Within other text a missing value is empty.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, fields

from pydantic import JsonValue

from schemas.ticket import Ticket

TICKET_NAMES = frozenset(field.name for field in fields(Ticket))

# Objects cannot stand within text.
_WHOLE_ONLY = frozenset({"fields", "evidence"})

_FIELD = "fields."

_TOKEN = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")
_WHOLE = re.compile(r"\{([^{}]+)\}")


def check_template(template: JsonValue, known_fields: Collection[str] | None = None) -> list[str]:
    """Everything wrong with a template, each with the place in it.

    `known_fields` are the profile's fields, if known.
    """
    return list(_problems(template, "", known_fields))


def render(template: JsonValue, ticket: Ticket) -> JsonValue:
    """The template with the ticket's values. It must have passed `check_template`."""
    return _render(template, _values(ticket))


def _values(ticket: Ticket) -> dict[str, JsonValue]:
    values: dict[str, JsonValue] = asdict(ticket)
    values["severity"] = str(ticket.severity)
    values.update({f"{_FIELD}{name}": value for name, value in ticket.fields.items()})
    return values


def _render(template: JsonValue, values: Mapping[str, JsonValue]) -> JsonValue:
    if isinstance(template, dict):
        return {name: _render(item, values) for name, item in template.items()}
    if isinstance(template, list):
        return [_render(item, values) for item in template]
    if not isinstance(template, str):
        return template
    if whole := _WHOLE.fullmatch(template):
        return values.get(whole[1])
    return _TOKEN.sub(lambda token: _text(token, values), template)


def _text(token: re.Match[str], values: Mapping[str, JsonValue]) -> str:
    if token[0] in ("{{", "}}"):
        return token[0][0]
    value = values.get(token[1])
    return "" if value is None else str(value)


def _problems(template: JsonValue, path: str, known: Collection[str] | None) -> Iterator[str]:
    if isinstance(template, dict):
        for name, item in template.items():
            yield from _problems(item, f"{path}/{name}", known)
    elif isinstance(template, list):
        for number, item in enumerate(template):
            yield from _problems(item, f"{path}/{number}", known)
    elif isinstance(template, str):
        whole = _WHOLE.fullmatch(template) is not None
        for token in _TOKEN.finditer(template):
            if problem := _token_problem(token, known, whole=whole):
                yield f"{path or '/'}: {problem}"


def _token_problem(token: re.Match[str], known: Collection[str] | None, *, whole: bool) -> str:
    if token[0] in ("{{", "}}"):
        return ""
    if token[0] in ("{", "}"):
        return f"a single {token[0]}: write {token[0] * 2} for a brace, or {{name}} for a ticket field"
    name = token[1]
    if name.startswith(_FIELD):
        field = name.removeprefix(_FIELD)
        if not field or (known is not None and field not in known):
            return f"no field {field!r} in the profile; there are: {', '.join(sorted(known or ()))}"
        return ""
    if name not in TICKET_NAMES:
        return f"a ticket has no {name!r}; it has: {', '.join(sorted(TICKET_NAMES))}, and fields.NAME"
    if name in _WHOLE_ONLY and not whole:
        return f"{{{name}}} is an object and cannot stand within other text"
    return ""
