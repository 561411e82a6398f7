"""`andon check`: what loads, but may not do what was meant, and what this machine does not have."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from connectors import FileConfig, HttpSinkConfig, MqttConfig
from connectors.secrets import exposure, read_secret, tls_context
from pipeline.config.document import Finding
from pipeline.config.document import Path as Place
from pipeline.config.endpoints import secrets_of
from pipeline.config.loading import Loaded, load_document
from pipeline.config.site import Site
from pipeline.config.topics import overlap
from pipeline.config.words import SECRET, nearest, quoted
from pipeline.stages.route import RouteConfig
from schemas.errors import ConfigError, Issue, Level, SecretError


def check(path: Path) -> list[Issue]:
    """Everything to say about a site file, in file order: its errors or, when it loads, what may surprise.

    Reads the secrets and certificates it names, connects to nothing, and writes nothing.
    """
    try:
        loaded = load_document(path)
    except ConfigError as error:
        return error.issues
    return loaded.document.issues(list(_remarks(loaded)))


def _remarks(loaded: Loaded) -> Iterator[Finding]:
    site = loaded.site
    yield from _sources(site)
    yield from _routing(site, loaded.document.data)
    yield from _clears(site)
    yield from _machine(site)
    yield from _secret_files(site)
    for name, sink in site.sinks.items():
        if isinstance(sink, HttpSinkConfig):
            yield from _http(("sinks", name), sink, site)


def _sources(site: Site) -> Iterator[Finding]:
    if not site.sources:
        yield Finding((), "no sources: nothing will be read", level="warning")
    for name, source in site.sources.items():
        path: Place = ("sources", name)
        if source.mode == "observe":
            yield Finding(
                (*path, "mode"), "observe: everything is decided and shown, nothing is sent", level="notice"
            )
        if isinstance(source, MqttConfig):
            yield from _mqtt(path, source, site)
        if isinstance(source, FileConfig) and not site.path(source.path).exists():
            yield Finding((*path, "path"), f"{quoted(source.path)} does not exist (yet)", level="warning")


def _mqtt(path: Place, source: MqttConfig, site: Site) -> Iterator[Finding]:
    if source.qos == 0:
        message = "QoS 0 promises nothing: what is lost on the way is lost; use 1 where the machines allow it"
        yield Finding((*path, "qos"), message, level="notice")
    if source.tls is None and source.password is not None and not _is_loopback(source.host):
        message = f"without tls the password crosses the network to {source.host} in plain text"
        yield Finding((*path, "password"), message, level="warning")
    for (first, one), (second, other) in combinations(enumerate(source.topics), 2):
        if overlap(one, other):
            message = f"overlaps topics[{first}] '{one}': brokers may deliver what matches both twice"
            yield Finding((*path, "topics", second), message, level="warning")
    if source.tls is not None:
        yield from _tls((*path, "tls"), site, source.tls.ca, source.tls.cert, source.tls.key)


def _tls(
    path: Place, site: Site, ca: str | None, cert: str | None = None, key: str | None = None
) -> Iterator[Finding]:
    try:
        tls_context(ca, cert, key, base=site.folder)
    except SecretError as error:
        yield Finding(path, str(error))


def _routing(site: Site, given: dict[str, Any]) -> Iterator[Finding]:
    for name, source in site.sources.items():
        routes = [route for route in site.routes if route.sources is None or name in route.sources]
        if source.mode == "live" and not routes:
            yield Finding(("sources", name), "is live, but no route takes its alarms", level="warning")
    for number, route in enumerate(site.routes):
        if _takes_all(route) and number + 1 < len(site.routes):
            message = f"never reached: routes[{number}] '{route.id}' takes everything"
            yield Finding(("routes", number + 1), message, level="warning")
            break
    used = {route.sink for route in site.routes}
    for name in given.get("sinks", {}):
        if name not in used:
            yield Finding(("sinks", name), "no route leads to this sink", at_key=True, level="warning")


def _takes_all(route: RouteConfig) -> bool:
    return route.sources is None and route.categories is None and route.assets is None


def _clears(site: Site) -> Iterator[Finding]:
    """A misspelt rule id is a valid code; tell it when it looks like one of the ids."""
    ids = {rule.id for rule in site.rules}
    for number, rule in enumerate(site.rules):
        guess = nearest(rule.clears, ids - {rule.id}) if rule.clears and rule.clears not in ids else None
        if guess is not None:
            message = (
                f"{quoted(rule.clears or '')} is no rule's id, so it is taken as a code; was '{guess}' meant?"
            )
            yield Finding(("rules", number, "clears"), message, level="warning")


def _machine(site: Site) -> Iterator[Finding]:
    if site.model.enabled and site.model.path is not None and not site.path(site.model.path).is_file():
        yield Finding(("model", "path"), f"there is no file {quoted(site.model.path)}")
    if not site.model.enabled:
        yield Finding(("model", "enabled"), "rules alone read; the rest goes to review", level="notice")
    if not site.store_path.parent.is_dir():
        yield Finding(
            ("store", "path"), f"there is no folder {quoted(str(site.store_path.parent))}", level="warning"
        )
    if site.metrics.port is None:
        yield Finding(("metrics", "port"), "metrics and /healthz are off", level="notice")
    elif not _is_loopback(site.metrics.host):
        message = "whoever reaches this address can read the metrics; 127.0.0.1 keeps them on this machine"
        yield Finding(("metrics", "host"), message, level="warning")


def _secret_files(site: Site) -> Iterator[Finding]:
    for part, configs in (("sources", site.sources), ("sinks", site.sinks)):
        for name, config in configs.items():
            for path, secret in secrets_of(config, (part, name)):
                try:
                    read_secret(secret, site.folder)
                    warning = exposure(secret, site.folder)
                except SecretError as error:
                    # Credentials exist only where systemd starts the service.
                    level: Level = "notice" if secret.credential else "error"
                    yield Finding(path, str(error), level=level)
                    continue
                if warning:
                    yield Finding(path, warning, level="warning")


def _http(path: Place, sink: HttpSinkConfig, site: Site) -> Iterator[Finding]:
    parts = urlsplit(sink.url)
    secret = next(secrets_of(sink, path), None)
    if parts.scheme == "http" and secret is not None and not _is_loopback(parts.hostname or ""):
        message = f"over http the secret crosses the network to {parts.hostname} in plain text; use https"
        yield Finding((*path, "url"), message, level="warning")
    if sink.ca is not None:
        yield from _tls((*path, "ca"), site, sink.ca)
    for place in _literal_secrets(sink.body, (*path, "body")):
        yield Finding(place, "looks like a secret in plain text; secrets belong in headers", level="warning")


def _literal_secrets(value: Any, path: Place) -> Iterator[Place]:
    """Fixed text in a body under a key that names a secret; `{key}` and other placeholders are none."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _literal_secrets(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _literal_secrets(item, (*path, number))
    elif isinstance(value, str) and value and "{" not in value and SECRET.search(str(path[-1])):
        yield path


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"
