"""Passwords, TLS and client certificates against a real Mosquitto, and what `check` finds wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import paho.mqtt.client as paho
import pytest
from certificates import Certificates
from consumer import Consumer, Notices, consuming, until
from mosquitto import Mosquitto
from paho.mqtt.enums import CallbackAPIVersion
from ports import free_port

from connectors.base import NoticeKind
from connectors.mqtt import MqttConfig, MqttSource
from schemas.errors import SourceRefused

pytestmark = pytest.mark.broker

PASSWORD = "correct horse battery"


def make(port: int, **given: Any) -> MqttSource:
    notices = given.pop("notices", None) or Notices()
    config = MqttConfig.model_validate({"type": "mqtt", "port": port, "topics": ["plant/+/log"], **given})
    return config.build("line7", notices=notices)


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "password"
    file.write_text(PASSWORD + "\n")
    return file


@pytest.fixture
def locked(tmp_path: Path) -> Iterator[Mosquitto]:
    """A broker with a password, whose ACL lets `line7` read all and write nothing but ok/#."""
    acl = tmp_path / "acl"
    acl.write_text("user line7\ntopic read #\ntopic write ok/#\nuser machine\ntopic readwrite #\n")
    acl.chmod(0o600)
    users = {"line7": PASSWORD, "machine": "m"}
    with Mosquitto(tmp_path / "broker", passwords=users, lines=[f"acl_file {acl}"]) as broker:
        yield broker


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
async def test_password(locked: Mosquitto, secret: Path, protocol: str) -> None:
    source = make(locked.port, protocol=protocol, username="line7", password={"file": str(secret)})
    async with consuming(source) as consumer:
        await until(lambda: source.subscribed)
        await asyncio.to_thread(locked.publish, [("plant/p1/log", b"x")], user=("machine", "m"))
        await consumer.wait_for(1)


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
async def test_a_wrong_password_is_refused_without_saying_it(
    locked: Mosquitto, tmp_path: Path, protocol: str
) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("swordfish")
    source = make(locked.port, protocol=protocol, username="line7", password={"file": str(wrong)})
    error = await Consumer(source).failure()
    assert isinstance(error, SourceRefused)
    assert "check username" in str(error)
    check = await source.check()
    assert not check.ok
    for text in (str(error), repr(error), check.message, repr(source._options), str(source.stats())):
        assert "swordfish" not in text


@pytest.fixture
def tls(tmp_path: Path, certificates: Certificates) -> Iterator[Mosquitto]:
    yield from _secure(tmp_path, certificates, "require_certificate false")


@pytest.fixture
def mtls(tmp_path: Path, certificates: Certificates) -> Iterator[Mosquitto]:
    yield from _secure(tmp_path, certificates, "require_certificate true")


def _secure(tmp_path: Path, certificates: Certificates, line: str) -> Iterator[Mosquitto]:
    path = certificates.path
    listener = [
        f"cafile {certificates.ca}",
        f"certfile {path('server.crt')}",
        f"keyfile {path('server.key')}",
        line,
    ]
    with Mosquitto(tmp_path / "broker", listener=listener) as broker:
        yield broker


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
async def test_tls_carries_a_burst(tls: Mosquitto, certificates: Certificates, protocol: str) -> None:
    """TLS decrypts more than was asked for: what waits there must not be forgotten."""
    source = make(tls.port, protocol=protocol, host="localhost", tls={"ca": certificates.ca})
    async with consuming(source) as consumer:
        await until(lambda: source.subscribed)
        await asyncio.to_thread(_publish_tls, tls.port, certificates.ca, 400)
        await consumer.wait_for(400)
        assert consumer.payloads == [b"%d" % number for number in range(400)]
        await until(lambda: source.stats().acked == 400)


def _publish_tls(port: int, ca: str, count: int) -> None:
    client = paho.Client(CallbackAPIVersion.VERSION2)
    client.tls_set(ca)
    client.connect("localhost", port)
    client.loop_start()
    infos = [client.publish("plant/p1/log", b"%d" % number, 1) for number in range(count)]
    for info in infos:
        info.wait_for_publish(10)
    client.disconnect()
    client.loop_stop()


async def test_a_client_certificate(mtls: Mosquitto, certificates: Certificates) -> None:
    path = certificates.path
    tls = {"ca": certificates.ca, "cert": path("client.crt"), "key": path("client.key")}
    source = make(mtls.port, host="localhost", tls=tls)
    async with consuming(source):
        await until(lambda: source.subscribed)
    assert (await source.check()).ok


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
async def test_a_missing_client_certificate_is_told(
    mtls: Mosquitto, certificates: Certificates, protocol: str
) -> None:
    notices = Notices()
    source = make(
        mtls.port, protocol=protocol, host="localhost", tls={"ca": certificates.ca}, notices=notices
    )
    async with consuming(source):
        await until(lambda: notices.of(NoticeKind.UNREACHABLE))
        assert "certificate" in str(source.stats().last_error)
    check = await source.check()
    assert (check.ok, "certificate" in check.message) == (False, True)


async def test_a_server_that_another_authority_signed_is_not_trusted(
    tls: Mosquitto, certificates: Certificates
) -> None:
    notices = Notices()
    source = make(tls.port, host="localhost", tls={"ca": certificates.path("other-ca.crt")}, notices=notices)
    async with consuming(source):
        await until(lambda: notices.of(NoticeKind.UNREACHABLE))
        assert "certificate verify failed" in notices.of(NoticeKind.UNREACHABLE)[0].detail


# check


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
async def test_check_finds_all_well_and_leaves_nothing(mosquitto: Mosquitto, protocol: str) -> None:
    source = make(mosquitto.port, protocol=protocol, probe_topic="plant/andon-check")
    async with consuming(source):
        await until(lambda: source.subscribed)
        check = await source.check()
        assert check.ok, check.message
        assert "read back" in check.message
        assert source.stats().connects == 1, "the running source is not disturbed"
        assert source.stats().received == 0


@pytest.mark.parametrize("protocol", ["5", "3.1.1"])
async def test_check_finds_what_the_acl_silently_drops(
    locked: Mosquitto, secret: Path, protocol: str
) -> None:
    given: dict[str, Any] = {"protocol": protocol, "username": "line7", "password": {"file": str(secret)}}
    denied = await make(locked.port, probe_topic="forbidden/probe", **given).check()
    assert not denied.ok
    assert "never came back" in denied.message
    allowed = await make(locked.port, probe_topic="ok/probe", **given).check()
    assert allowed.ok, allowed.message
    assert "\n" not in denied.message + allowed.message


async def test_check_of_a_port_where_nobody_listens() -> None:
    check = await make(free_port()).check()
    assert not check.ok
    assert "no connection" in check.message


async def test_check_of_a_server_that_is_no_broker() -> None:
    async def web(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(web, "127.0.0.1", 0)
    async with server:
        check = await make(server.sockets[0].getsockname()[1]).check()
    assert not check.ok
    assert "MQTT port" in check.message


async def test_check_of_plain_mqtt_on_a_tls_port(tls: Mosquitto) -> None:
    check = await make(tls.port).check()
    assert not check.ok
    assert "tls:" in check.message
