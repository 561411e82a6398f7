"""MQTT source (MQTT 5.0 and 3.1.1 over paho-mqtt)."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from connectors.base import Port, Secret, SourceOptions, Strict


class MqttTls(Strict):
    """TLS towards the broker. Without `ca` the system's certificate store is used."""

    ca: str | None = None
    cert: str | None = None
    key: str | None = None


class MqttConfig(SourceOptions):
    type: Literal["mqtt"]
    host: str = "127.0.0.1"
    port: Port = 1883
    protocol: Literal["5", "3.1.1"] = "5"
    client_id: str | None = Field(default=None, description="default: andon-<source name>; unique at the broker")
    topics: list[str] = Field(min_length=1)
    qos: Literal[0, 1] = 1
    username: str | None = None
    password: Secret | None = None
    tls: MqttTls | None = None
    keepalive_s: int = Field(default=30, ge=5, le=3600)
    session_expiry_s: int = Field(default=86_400, ge=60, description="how long the broker keeps our session (MQTT 5)")
    receive_maximum: int = Field(default=200, ge=1, le=65_535, description="QoS 1 messages in flight towards us")
