"""The site file's model: it composes the config models that stand beside what they configure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any
from zoneinfo import ZoneInfo

from pydantic import Field, PrivateAttr, StringConstraints, model_validator

from connectors import SinkConfig, SourceConfig
from connectors.base import Port, Strict
from pipeline.config.builtins import ROUTE_ID, builtins
from pipeline.config.codes import Code
from pipeline.fields.definition import FieldConfig, Labels, Profile
from pipeline.model.options import ModelConfig
from pipeline.stages.options import Limits, ReviewConfig
from pipeline.stages.route import RouteConfig
from pipeline.stages.rules import RuleConfig
from pipeline.store.options import RetentionConfig, StoreConfig
from schemas.extraction import Severity

# Names go into metric labels, command lines and templates. No \w: editors read patterns as JavaScript does,
# where it knows no umlauts and no Chinese.
NAME = r"""^[^\s/+#:,{}\[\]<>&"'|\\]{1,64}$"""
Name = Annotated[str, StringConstraints(pattern=NAME)]
Description = Annotated[str, Field(min_length=1)]


class MetricsConfig(Strict):
    """Where Prometheus metrics and /healthz are served."""

    host: str = Field(
        default="127.0.0.1", min_length=1, description="address to listen on; loopback by default"
    )
    port: Port | None = Field(default=9108, description="TCP port; null turns metrics and /healthz off")


@dataclass(frozen=True, slots=True)
class SourceView:
    """Everything that holds for one source's events."""

    name: str
    config: SourceConfig
    profile_name: str
    profile: Profile
    timezone: ZoneInfo
    labels: Labels
    codes: Mapping[str, Mapping[str, Code]]

    @property
    def live(self) -> bool:
        return self.config.mode == "live"


class Site(Strict):
    """One gateway's whole configuration.

    Made by `load`, `loads` or `builtin`; built-in profiles, labels and the board are already in it, and code
    lists are already read from their CSV files (a field's `known` is a list or None, never a file).
    """

    site: str = Field(
        default="plant", min_length=1, max_length=64, description="name of this place, shown in tickets"
    )
    timezone: str = Field(
        default="UTC", description="IANA time zone of time stamps without one, such as Europe/Berlin"
    )
    store: StoreConfig = Field(
        default=StoreConfig(), description="where messages, alarms and tickets are kept"
    )
    retention: RetentionConfig = Field(default=RetentionConfig(), description="how long, and how much of it")
    model: ModelConfig = Field(default=ModelConfig(), description="the model that reads unknown lines")
    limits: Limits = Field(default=Limits(), description="sizes and waits; the defaults suit a small gateway")
    review: ReviewConfig = Field(default=ReviewConfig(), description="when people are asked")
    metrics: MetricsConfig = Field(default=MetricsConfig(), description="Prometheus metrics and /healthz")
    sources: dict[Name, SourceConfig] = Field(default={}, description="where messages come from, by name")
    profiles: dict[Name, Profile] = Field(
        default={},
        description="how lines are read, by name; adds to the built-in machine-log, or replaces it",
    )
    severities: dict[Severity, Description] = Field(
        default={}, description="the four severities, each described in one line; unnamed ones keep theirs"
    )
    categories: dict[Name, Description] = Field(
        default={},
        description="what kinds of trouble there are, each described in one line; replaces the built-in list",
    )
    actions: dict[Name, Description] = Field(
        default={},
        description="what can be asked for, each described in one line; replaces the built-in list",
    )
    rules: list[RuleConfig] = Field(
        default=[], description="decision rules; of those that match, the first decides what it states"
    )
    routes: list[RouteConfig] = Field(
        default=[],
        description="which alarms go to which sink; the first that fits; default: all to the first sink",
    )
    sinks: dict[Name, SinkConfig] = Field(
        default={},
        description="where tickets go, by name; the built-in `board` keeps them in andon's own store",
    )

    _text: str = PrivateAttr(default="")
    _file: Path | None = PrivateAttr(default=None)
    _codes: dict[tuple[str, str], dict[str, Code]] = PrivateAttr(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _with_builtins(cls, data: Any) -> Any:
        return with_builtins(data) if isinstance(data, dict) else data

    def in_force(self, text: str, file: Path, lists: Mapping[tuple[str, str], dict[str, Code]]) -> Site:
        """This site, knowing its text and folder, with the code lists themselves in place of their files."""
        profiles = dict(self.profiles)
        for (profile, field), codes in lists.items():
            fields = dict(profiles[profile].fields)
            fields[field] = FieldConfig(**dict(fields[field]) | {"known": sorted(codes)})
            profiles[profile] = Profile(fields=fields)
        site = self.model_copy(update={"profiles": profiles})
        site._text, site._file, site._codes = text, file, dict(lists)
        return site

    @property
    def text(self) -> str:
        """The text this site was read from; empty for the built-in one."""
        return self._text

    @property
    def file(self) -> Path | None:
        return self._file

    @cached_property
    def hash(self) -> str:
        """16 hex digits that change with anything in force: the text, and the code lists it names."""
        digest = hashlib.sha256(self._text.encode() or self.model_dump_json().encode())
        for place in sorted(self._codes):
            digest.update(repr((place, sorted(self._codes[place].values()))).encode())
        return digest.hexdigest()[:16]

    @cached_property
    def labels(self) -> Labels:
        return Labels(severities=self.severities, categories=self.categories, actions=self.actions)

    @property
    def folder(self) -> Path:
        """Where relative paths start: the site file's own folder."""
        return self._file.parent if self._file else Path()

    def path(self, name: str) -> Path:
        """`name` as the site file means it."""
        return self.folder / name

    @property
    def store_path(self) -> Path:
        return self.path(self.store.path)

    @property
    def socket_path(self) -> Path:
        """The command socket: as configured, else beside the store."""
        return self.path(self.store.socket) if self.store.socket else self.store_path.with_suffix(".sock")

    def known(self, profile: str, field: str) -> frozenset[str]:
        """The values a field may have; empty when any may. Raises KeyError for unknown names."""
        return self.profiles[profile].fields[field].known_values

    def codes(self, profile: str, field: str) -> Mapping[str, Code]:
        """What the CSV says of each code: its description and severity. Empty for fields without a CSV."""
        return self._codes.get((profile, field), {})

    def zone(self, source: str) -> ZoneInfo:
        """The time zone of a source's stamps that carry none."""
        return ZoneInfo(self.sources[source].timezone or self.timezone)

    def for_source(self, name: str) -> SourceView:
        """Raises KeyError when there is no such source."""
        config = self.sources[name]
        profile = self.profiles[config.profile]
        codes = {field: self.codes(config.profile, field) for field in profile.fields}
        return SourceView(name, config, config.profile, profile, self.zone(name), self.labels, codes)


def with_builtins(data: dict[str, Any]) -> dict[str, Any]:
    """A site file's data with what is built in added where the file does not say otherwise."""
    given, merged = builtins(), dict(data)
    for key in ("profiles", "severities"):
        merged[key] = _added(given[key], data.get(key, {}))
    for key in ("categories", "actions"):
        merged.setdefault(key, given[key])
    sinks = data.get("sinks", {})
    if isinstance(sinks, dict):
        merged["sinks"] = sinks | {name: sink for name, sink in given["sinks"].items() if name not in sinks}
        merged.setdefault("routes", [{"id": ROUTE_ID, "sink": next(iter(merged["sinks"]))}])
    return merged


def _added(builtin: dict[str, Any], own: Any) -> Any:
    return builtin | own if isinstance(own, dict) else own
