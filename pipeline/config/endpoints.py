"""Checks of what touches the outside: sources, sinks, and the secrets they need."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from functools import cache
from typing import Any
from urllib.parse import parse_qsl, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from pydantic import BaseModel

from connectors import FileConfig, HttpSinkConfig, MqttConfig, SourceConfig, StdinConfig
from connectors.base import Secret
from connectors.template import check_template
from pipeline.config.document import Finding, Path
from pipeline.config.draft import Draft
from pipeline.config.expressions import expression_problem
from pipeline.config.topics import filter_problem, mismatch, template_problem
from pipeline.config.words import SECRET, nearest, quoted, unknown

# RFC 9110, 5.6.2 (token) and 5.5 (field value, visible ASCII and blanks).
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")


def endpoint_findings(draft: Draft) -> Iterator[Finding]:
    """Everything wrong with sources and sinks beyond their models."""
    timezone = draft.given.get("timezone")
    if isinstance(timezone, str):
        yield from _timezone(("timezone",), timezone)
    for name, source in draft.sources.items():
        yield from _source(("sources", name), source, draft)
    yield from _shared(draft)
    for name, sink in draft.sinks.items():
        if isinstance(sink, HttpSinkConfig):
            yield from _http(("sinks", name), sink, draft)


def timezone_problem(name: str) -> str | None:
    """What is wrong with a time zone's name; None when it exists."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        zones = _zones()
        cities = {zone.rpartition("/")[2]: zone for zone in zones}
        city = nearest(name.replace(" ", "_"), cities)
        guess = nearest(name, zones) or (cities[city] if city else None)
        hint = f"did you mean '{guess}'?" if guess else "write it like Europe/Berlin or Asia/Shanghai"
        return f"unknown time zone {quoted(name)}; {hint}"
    return None


@cache
def _zones() -> frozenset[str]:
    return frozenset(available_timezones())


def secrets_of(value: Any, path: Path) -> Iterator[tuple[Path, Secret]]:
    """Every secret below `value`, with its path."""
    if isinstance(value, Secret):
        yield path, value
    elif isinstance(value, BaseModel):
        for name in type(value).model_fields:
            yield from secrets_of(getattr(value, name), (*path, name))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from secrets_of(item, (*path, key))


def _timezone(path: Path, name: str) -> Iterator[Finding]:
    problem = timezone_problem(name)
    if problem:
        yield Finding(path, problem)


def _source(path: Path, source: SourceConfig, draft: Draft) -> Iterator[Finding]:
    if source.profile is not None and source.profile not in draft.names["profiles"]:
        yield Finding((*path, "profile"), unknown("profile", source.profile, draft.names["profiles"]))
    if source.timezone is not None:
        yield from _timezone((*path, "timezone"), source.timezone)
    if source.encoding is not None and not _is_text_encoding(source.encoding):
        yield Finding(
            (*path, "encoding"), f"unknown text encoding {quoted(source.encoding)}{_like(source.encoding)}"
        )
    yield from _framing(path, source)
    yield from _template((*path, "topic_template"), source)
    if isinstance(source, MqttConfig):
        yield from _mqtt(path, source)


def _is_text_encoding(name: str) -> bool:
    try:
        return bool(codecs.lookup(name)._is_text_encoding)
    except (LookupError, ValueError):
        return False


def _like(encoding: str) -> str:
    common = (
        "utf-8",
        "utf-16",
        "utf-16-le",
        "gb18030",
        "gbk",
        "big5",
        "cp1252",
        "latin-1",
        "shift_jis",
        "cp437",
    )
    guess = nearest(encoding, common)
    return f"; did you mean '{guess}'?" if guess else "; leave it out to have it found"


def _framing(path: Path, source: SourceConfig) -> Iterator[Finding]:
    if source.framing == "multiline" and source.multiline is None:
        yield Finding((*path, "framing"), "framing multiline needs the key multiline, with start")
    if source.multiline is None:
        return
    if source.framing != "multiline":
        message = "multiline belongs to framing: multiline"
        yield Finding((*path, "multiline"), message, at_key=True)
    problem = expression_problem(source.multiline.start) if source.multiline.start is not None else None
    if problem:
        yield Finding((*path, "multiline", "start"), problem)


def _template(path: Path, source: SourceConfig) -> Iterator[Finding]:
    if source.topic_template is None:
        return
    problem = template_problem(source.topic_template)
    for _, topic in _topics(source):
        problem = problem or (None if filter_problem(topic) else mismatch(source.topic_template, topic))
    if problem:
        yield Finding(path, problem)


def _topics(source: SourceConfig) -> list[tuple[int, str]]:
    topics = source.topics if isinstance(source, MqttConfig) else None
    return [(number, topic) for number, topic in enumerate(topics or ()) if topic is not None]


def _mqtt(path: Path, source: MqttConfig) -> Iterator[Finding]:
    for number, topic in _topics(source):
        problem = filter_problem(topic)
        if problem is None and topic in source.topics[:number]:
            problem = f"topic {quoted(topic)} stands there twice"
        if problem:
            yield Finding((*path, "topics", number), problem)
    if source.tls is not None and (source.tls.key is None) != (source.tls.cert is None):
        yield Finding((*path, "tls"), "cert and key go together: the client certificate and its private key")
    for key in ("host", "client_id", "username"):
        if getattr(source, key) == "":
            yield Finding((*path, key), "must not be empty")


def _shared(draft: Draft) -> Iterator[Finding]:
    """What no two sources may have in common: they would take turns at it."""
    seen: dict[tuple[Any, ...], str] = {}
    for name, source in draft.sources.items():
        key, last, what = _own(name, source)
        if key in seen:
            yield Finding(("sources", name, last), f"{what} is used already by source '{seen[key]}'")
        seen.setdefault(key, name)


def _own(name: str, source: SourceConfig) -> tuple[tuple[Any, ...], str, str]:
    if isinstance(source, StdinConfig):
        return ("stdin",), "type", "standard input"
    if isinstance(source, FileConfig):
        return ("file", source.path or name), "path", "this file"
    client = source.client_id or f"andon-{name}"
    return ("mqtt", source.host, source.port, client), "client_id", f"client id '{client}' at this broker"


def _http(path: Path, sink: HttpSinkConfig, draft: Draft) -> Iterator[Finding]:
    yield from _url((*path, "url"), sink.url)
    yield from _pointer((*path, "reference"), sink.reference)
    if sink.find is not None:
        yield from _url((*path, "find", "url"), sink.find.url)
        yield from _pointer((*path, "find", "reference"), sink.find.reference)
        if sink.find.url is not None and "{key}" not in sink.find.url:
            yield Finding((*path, "find", "url"), "needs {key} where the ticket's key goes")
    raw = draft.given.get("sinks", {}).get(path[-1], {})
    for place, text in _strings(raw.get("body"), (*path, "body")):
        for problem in check_template(text, draft.names["fields"]):
            yield Finding(place, problem.removeprefix("/: "))
    for name, value in (sink.headers or {}).items():
        yield from _header((*path, "headers", name), name, value)


def _strings(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    """Every text in plain data, with its path."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict | list):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _strings(item, (*path, key))


def _url(path: Path, url: str | None) -> Iterator[Finding]:
    """Without repeating it: what is wrong may be that it holds a password."""
    try:
        parts = urlsplit(url or "http://host")
        host, _ = parts.hostname, parts.port
    except ValueError:
        yield Finding(path, "not a valid URL")
        return
    if parts.scheme not in ("http", "https") or not host:
        yield Finding(path, "expected a URL that starts with https:// or http:// and names a host")
    elif parts.username is not None or parts.password is not None:
        yield Finding(path, "a password never stands in a URL; send it as a header given as {file: /path}")
    elif any(SECRET.search(name) for name, value in parse_qsl(parts.query) if value != "{key}"):
        yield Finding(path, "a secret never stands in a URL; send it as a header given as {file: /path}")


def _pointer(path: Path, pointer: str | None) -> Iterator[Finding]:
    if pointer and not re.fullmatch(r"(/([^~/]|~[01])*)+", pointer):
        yield Finding(path, f"not a JSON pointer (like /id or /issue/key): {quoted(pointer)}")


def _header(path: Path, name: str, value: str | Secret | None) -> Iterator[Finding]:
    if not _HEADER_NAME.fullmatch(name):
        yield Finding(path, f"{quoted(name)} is no HTTP header name", at_key=True)
    if not isinstance(value, str):
        return
    if SECRET.search(name):
        yield Finding(path, "a secret never stands in the site file; use {file: /path} or {credential: name}")
    elif not _HEADER_VALUE.fullmatch(value):
        yield Finding(path, "an HTTP header holds one line of ASCII text")
