"""One file a protocol: its config model, its client, its build(). The unions below name them all."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from connectors.board import BoardConfig
from connectors.file import FileConfig, StdinConfig
from connectors.http import HttpSinkConfig
from connectors.mqtt import MqttConfig

SourceConfig = Annotated[MqttConfig | FileConfig | StdinConfig, Field(discriminator="type")]
SinkConfig = Annotated[HttpSinkConfig | BoardConfig, Field(discriminator="type")]

__all__ = [
    "BoardConfig",
    "FileConfig",
    "HttpSinkConfig",
    "MqttConfig",
    "SinkConfig",
    "SourceConfig",
    "StdinConfig",
]
