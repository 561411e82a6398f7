"""A short visit to the broker for `andon check --connect`: may we connect, subscribe, and be heard?

It comes under a client id of its own and leaves no session: the service may be running meanwhile.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable

import paho.mqtt.client as paho
from paho.mqtt.enums import MQTTErrorCode
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from connectors.base import Check
from connectors.mqtt_client import CONNECT_S, LastError, make_probe, subscribe
from connectors.mqtt_session import FAILURE, LinkOptions, advice

# For each answer of the broker, and for the probe message to come back.
ANSWER_S = 5.0


class _Problem(Exception):
    """What the visit found wrong, in one line."""


class _Visit:
    """The visit's state, filled in by paho's callbacks. All on one thread."""

    def __init__(self, options: LinkOptions) -> None:
        self.options = options
        self.client = make_probe(options, f"{options.client_id}-check-{uuid.uuid4().hex[:8]}")
        self.connack: ReasonCode | None = None
        self.suback: list[ReasonCode] | None = None
        self.puback: ReasonCode | None = None
        self.heard: set[bytes] = set()
        self.error = LastError()
        self.client.enable_logger(self.error.logger())
        self.client.on_connect = self._on_connect
        self.client.on_subscribe = self._on_subscribe
        self.client.on_publish = self._on_publish
        self.client.on_message = self._on_message

    def until(self, answered: Callable[[], bool], within_s: float) -> bool:
        """Drive the connection until there is an answer.

        False when none came in time or the connection ended.
        """
        deadline = time.monotonic() + within_s
        while not answered():
            if time.monotonic() > deadline or self.client.loop(0.2) != MQTTErrorCode.MQTT_ERR_SUCCESS:
                return answered()
        return True

    def _on_connect(
        self,
        _c: paho.Client,
        _d: object,
        _flags: paho.ConnectFlags,
        reason: ReasonCode,
        _p: Properties | None,
    ) -> None:
        self.connack = reason

    def _on_subscribe(
        self, _c: paho.Client, _d: object, _mid: int, codes: list[ReasonCode], _p: Properties | None
    ) -> None:
        self.suback = codes

    def _on_publish(self, _c: paho.Client, _d: object, _mid: int, reason: ReasonCode, _p: Properties) -> None:
        self.puback = reason

    def _on_message(self, _c: paho.Client, _d: object, message: paho.MQTTMessage) -> None:
        self.heard.add(bytes(message.payload))


def visit(options: LinkOptions, probe_topic: str | None = None) -> Check:
    """Connect, subscribe to the source's filters (without their retained messages where MQTT 5 allows),
    and leave.

    With `probe_topic` also publish to it and read it back: an ACL that silently drops messages shows only
    then. Blocks; call it off the event loop.
    """
    visitor = _Visit(options)
    try:
        _connect(visitor)
        _subscribe(visitor)
        if probe_topic is not None:
            _probe(visitor, probe_topic)
    except _Problem as problem:
        return Check(False, f"{options.broker}: {problem}")
    finally:
        visitor.client.disconnect()
    version = "5" if options.mqtt5 else "3.1.1"
    heard = "" if probe_topic is None else f"; {probe_topic} was published and read back"
    return Check(
        True, f"{options.broker}: MQTT {version}, {len(options.filters)} topic filter(s) granted{heard}"
    )


def _connect(visitor: _Visit) -> None:
    try:
        visitor.client.reconnect()
    except (OSError, ValueError) as error:
        raise _Problem(f"no connection: {error}") from None
    visitor.until(lambda: visitor.connack is not None, CONNECT_S)
    reason = visitor.connack
    if reason is None:
        raise _Problem(
            f"no answer to CONNECT ({visitor.error.text or 'the broker hung up, or stays silent'}); "
            f"{visitor.options.no_answer_hint}"
        )
    if reason.is_failure:
        raise _Problem(f"refused: {reason}" + (f"; {what}" if (what := advice(reason.value)) else ""))


def _subscribe(visitor: _Visit) -> None:
    filters = dict(visitor.options.filters)
    subscribe(visitor.client, filters, mqtt5=visitor.options.mqtt5, retained=False)
    if not visitor.until(lambda: visitor.suback is not None, ANSWER_S) or visitor.suback is None:
        raise _Problem("no answer to SUBSCRIBE")
    refused = [
        f"{name} ({code})"
        for name, code in zip(filters, visitor.suback, strict=True)
        if code.value >= FAILURE
    ]
    if refused:
        raise _Problem(f"the broker refuses to let us read {', '.join(refused)}: check its ACL")


def _probe(visitor: _Visit, topic: str) -> None:
    payload = f"andon check {uuid.uuid4().hex}".encode()
    visitor.suback = None
    subscribe(visitor.client, {topic: 1}, mqtt5=visitor.options.mqtt5)
    visitor.until(lambda: visitor.suback is not None, ANSWER_S)
    visitor.client.publish(topic, payload, qos=1)
    if not visitor.until(lambda: payload in visitor.heard, ANSWER_S):
        reason = f" ({visitor.puback})" if visitor.puback is not None and visitor.puback.is_failure else ""
        raise _Problem(
            f"published to {topic}, and it never came back{reason}: the broker drops it, "
            "check its ACL (read and write) and its limits"
        )
