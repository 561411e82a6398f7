"""PUBLISH packets taken apart: the same as paho reads them, and never a crash."""

from __future__ import annotations

import struct

import paho.mqtt.client as paho
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from connectors.mqtt_client import Client, Publish, read_publish

TOPICS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=40)


def properties(expiry: int, users: list[tuple[str, str]]) -> bytes:
    packed = Properties(PacketTypes.PUBLISH)
    packed.MessageExpiryInterval = expiry
    if users:
        packed.UserProperty = users
    return bytes(packed.pack())


@given(
    topic=TOPICS,
    payload=st.binary(max_size=300),
    qos=st.integers(0, 1),
    retain=st.booleans(),
    duplicate=st.booleans(),
    mid=st.integers(1, 65_535),
    users=st.lists(st.tuples(st.just("key"), st.text("abc", max_size=60)), max_size=4),
    mqtt5=st.booleans(),
)
def test_what_was_packed_is_read(
    topic: str,
    payload: bytes,
    qos: int,
    retain: bool,
    duplicate: bool,
    mid: int,
    users: list[tuple[str, str]],
    mqtt5: bool,
) -> None:
    raw = topic.encode()
    packet = struct.pack("!H", len(raw)) + raw + (struct.pack("!H", mid) if qos else b"")
    packet += (properties(60, users) if mqtt5 else b"") + payload
    header = 0x30 | qos << 1 | retain | duplicate << 3
    assert read_publish(header, packet, mqtt5=mqtt5) == Publish(
        raw, payload, mid if qos else 0, qos, retain, duplicate
    )


@given(st.integers(0x30, 0x3F), st.binary(max_size=40), st.booleans())
def test_no_packet_is_worse_than_a_value_error(header: int, packet: bytes, mqtt5: bool) -> None:
    try:
        publish = read_publish(header, packet, mqtt5=mqtt5)
    except ValueError:
        return
    assert publish.topic
    assert publish.topic + publish.payload in packet or publish.qos or mqtt5


@pytest.mark.parametrize(
    "packet", [b"", b"\0", b"\0\5abc", b"\0\1a\0", b"\0\1a\0\1\xff\xff\xff\xff", b"\0\1a\0\1\5ab"]
)
def test_a_packet_cut_short_is_an_error(packet: bytes) -> None:
    with pytest.raises(ValueError):
        read_publish(0x32, packet, mqtt5=True)


def test_paho_still_calls_what_we_override() -> None:
    """If this fails after an upgrade of paho: nothing is lost (see Client), but properties are read again."""
    assert "_handle_publish" in vars(paho.Client)
    client = Client(CallbackAPIVersion.VERSION2)
    assert {"command", "packet"} <= set(client._in_packet)
    assert client._protocol == paho.MQTTv311
