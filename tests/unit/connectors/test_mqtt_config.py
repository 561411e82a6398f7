"""What the site file may say about an MQTT source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from connectors import SourceConfig
from connectors.mqtt import MqttConfig
from schemas.errors import SecretError

MQTT = {"type": "mqtt", "topics": ["plant/+/log"]}


def parse(**changes: Any) -> MqttConfig:
    config = TypeAdapter(SourceConfig).validate_python({**MQTT, **changes})
    assert isinstance(config, MqttConfig)
    return config


def problem(**changes: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        parse(**changes)
    return "; ".join(f"{error['loc']}: {error['msg']}" for error in caught.value.errors())


@pytest.mark.parametrize("qos", [2, "2"])
def test_qos_2_is_refused_with_its_reason(qos: object) -> None:
    message = problem(qos=qos)
    assert "PUBREC" in message
    assert "before we have it on disk" in message
    assert "qos: 1" in message


def test_other_qos_are_just_wrong() -> None:
    assert "PUBREC" not in problem(qos=3)


@pytest.mark.parametrize("topic", ["#", "+", "a/+/b/#", "/", "a//b", "$share/g/a/#", "机器/+/日志"])
def test_good_filters(topic: str) -> None:
    assert parse(topics=[topic]).topics == [topic]


@pytest.mark.parametrize("topic", ["", "a#", "a/#/b", "#/a", "a+", "a/b+/c", "a\0b", "x" * 65_536])
def test_bad_filters_are_found_where_they_stand(topic: str) -> None:
    assert "'topics', 1" in problem(topics=["good/#", topic])


@pytest.mark.parametrize(
    "changes",
    [
        {"topics": []},
        {"password": {"file": "p"}},
        {"username": "u", "password": "in the clear"},
        {"username": "u", "password": {}},
        {"username": "u", "password": {"file": "a", "credential": "b"}},
        {"username": "u", "password": {"credential": "../etc/shadow"}},
        {"probe_topic": "a/#"},
        {"keepalive_s": 1},
        {"session_expiry_s": 0},
        {"receive_maximum": 0},
        {"nonsense": 1},
    ],
    ids=str,
)
def test_what_is_refused(changes: dict[str, Any]) -> None:
    problem(**changes)


def test_link_options(tmp_path: Path) -> None:
    (tmp_path / "password").write_text("pässword\n")
    config = parse(username="u", password={"file": "password"}, protocol="3.1.1", qos=0)
    options = config.link_options("line7", tmp_path)
    assert (options.client_id, options.password, options.mqtt5) == ("andon-line7", "pässword", False)
    assert dict(options.filters) == {"plant/+/log": 0}
    assert parse(client_id="own").link_options("line7").client_id == "own"


@pytest.mark.parametrize(
    ("changes", "hint"),
    [
        ({"username": "u", "password": {"file": "missing"}}, "does not exist"),
        ({"tls": {"ca": "missing.pem"}}, "missing.pem does not exist"),
        ({"tls": {"ca": "garbage.pem"}}, "holds no PEM certificate"),
        ({"tls": {"cert": "garbage.pem"}}, "no matching PEM certificate"),
        ({"tls": {"cert": "garbage.pem", "key": "missing.key"}}, "missing.key does not exist"),
    ],
)
def test_what_cannot_be_read_is_named(changes: dict[str, Any], hint: str, tmp_path: Path) -> None:
    (tmp_path / "garbage.pem").write_text("no certificate")
    with pytest.raises(SecretError, match=hint):
        parse(**changes).build("line7", base=tmp_path)
