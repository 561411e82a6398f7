"""MQTT source (MQTT 5.0 and 3.1.1 over paho-mqtt): at least once with QoS 1 and a persistent session.

The session is kept on purpose, also over the first connection of a process: what the broker could not deliver
while we were down comes then. A message is acknowledged after the journal's commit, in the order of arrival,
and only over the connection that brought it. Reconnecting is the source's own affair; see mqtt_link.py and
mqtt_connection.py.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import uuid
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, JsonValue, field_validator, model_validator

from connectors.base import (
    Check,
    Delivery,
    Notice,
    NoticeKind,
    Notices,
    Port,
    Secret,
    SourceOptions,
    SourceStats,
    Strict,
    log_notice,
)
from connectors.inbox import QUEUE_BYTES, QUEUE_MESSAGES, Inbox
from connectors.mqtt_check import visit
from connectors.mqtt_link import Link
from connectors.mqtt_mailbox import Counters, Mailbox
from connectors.mqtt_session import LinkOptions, Subscriptions
from connectors.secrets import read_secret, tls_context
from schemas.errors import SourceError

# One journal transaction takes at most so many messages: a few milliseconds of SQLite, far over what one
# fsync needs to be worth it.
BATCH_MAX = 512

# Over the time that a connected link needs to hang up (3 s).
JOIN_S = 5.0

# For a link's thread that has nothing left to do.
QUICK_JOIN_S = 1.0

_NO_QOS_2 = (
    "qos 2 is refused: even with acknowledgement by hand the client library confirms a QoS 2 message "
    "(PUBREC) before we have it on disk, so that a crash there would lose it. "
    "Use qos: 1; its redeliveries are recognised"
)


def _valid_filter(topic: str) -> str:
    """A topic filter as MQTT 5.0, 4.7 has it; anything else would only be found out by the broker."""
    levels = topic.split("/")
    if not topic or "\0" in topic or len(topic.encode("utf-8", "surrogatepass")) > 65_535:
        raise ValueError("a topic filter has 1 to 65,535 bytes and no NUL")
    if any("#" in level and level != "#" for level in levels) or "#" in levels[:-1]:
        raise ValueError("# stands alone in the last level, as in plant/#")
    if any("+" in level and level != "+" for level in levels):
        raise ValueError("+ stands alone in its level, as in plant/+/log")
    return topic


TopicFilter = Annotated[str, AfterValidator(_valid_filter)]


class MqttTls(Strict):
    """TLS towards the broker. Without `ca` the system's certificate store is used."""

    ca: str | None = Field(
        default=None, description="PEM file of the broker's certificate authority; default: the system's"
    )
    cert: str | None = Field(
        default=None, description="PEM file of our own certificate, for brokers that ask for one"
    )
    key: str | None = Field(default=None, description="PEM file of our own private key, unencrypted")


class MqttConfig(SourceOptions):
    type: Literal["mqtt"] = Field(description="messages from an MQTT broker")
    host: str = Field(default="127.0.0.1", min_length=1, description="name or address of the broker")
    port: Port = Field(default=1883, description="TCP port of the broker; 8883 is usual with tls")
    protocol: Literal["5", "3.1.1"] = Field(default="5", description="MQTT version, in quotes")
    client_id: str | None = Field(
        default=None, description="default: andon-<source name>; unique at the broker"
    )
    topics: list[TopicFilter] = Field(
        min_length=1, description="topic filters to subscribe to; + is one level, # all the rest"
    )
    qos: Literal[0, 1] = Field(default=1, description="1: nothing is lost; 0: nothing is promised")
    username: str | None = Field(default=None, description="user name at the broker")
    password: Secret | None = Field(default=None, description="where its password is: a file or a credential")
    tls: MqttTls | None = Field(default=None, description="encrypted connection; tls: {} for the defaults")
    keepalive_s: int = Field(
        default=30, ge=5, le=3600, description="seconds of silence after which a ping is sent"
    )
    session_expiry_s: int = Field(
        default=86_400, ge=60, le=4_294_967_295, description="how long the broker keeps our session (MQTT 5)"
    )
    receive_maximum: int = Field(
        default=200, ge=1, le=65_535, description="QoS 1 messages in flight towards us"
    )
    probe_topic: TopicFilter | None = Field(
        default=None,
        description="`andon check --connect` publishes to this topic and reads it back; default: it does not",
    )

    @field_validator("qos", mode="before")
    @classmethod
    def _say_why_not_qos_2(cls, value: object) -> object:
        if value in (2, "2"):
            raise ValueError(_NO_QOS_2)
        return value

    @field_validator("probe_topic")
    @classmethod
    def _no_wildcards(cls, topic: str | None) -> str | None:
        if topic is not None and set("+#") & set(topic):
            raise ValueError("a message is published to one topic: no wildcards")
        return topic

    @model_validator(mode="after")
    def _password_needs_username(self) -> Self:
        if self.password is not None and self.username is None:
            raise ValueError("password: needs username: (MQTT 3.1.1 knows no password alone)")
        return self

    def build(
        self,
        name: str,
        *,
        position: Mapping[str, JsonValue] | None = None,
        notices: Notices = log_notice,
        base: Path = Path(),
    ) -> MqttSource:
        """The source called `name`. `position` is what it said last time, `base` the site file's folder.

        Raises SecretError when the password or a certificate cannot be read.
        """
        return MqttSource(
            name,
            self.link_options(name, base),
            position=position,
            notices=notices,
            probe_topic=self.probe_topic,
        )

    def link_options(self, name: str, base: Path = Path()) -> LinkOptions:
        """What a connection needs, with the secrets read. Raises SecretError."""
        tls = self.tls
        return LinkOptions(
            host=self.host,
            port=self.port,
            client_id=self.client_id or f"andon-{name}",
            filters=dict.fromkeys(self.topics, self.qos),
            mqtt5=self.protocol == "5",
            username=self.username,
            password=None if self.password is None else read_secret(self.password, base),
            tls=None if tls is None else tls_context(tls.ca, tls.cert, tls.key, base=base),
            keepalive_s=self.keepalive_s,
            session_expiry_s=self.session_expiry_s,
            receive_maximum=self.receive_maximum,
        )


class MqttSource:
    """A persistent MQTT session as a source. See connectors.base.Source for what each method promises.

    `batches()` connects, and goes on for ever: an unreachable broker is waited for. It raises SourceRefused
    when the broker will not have us or our client id is used twice, and SourceError when the network thread
    died; it may be called again after either.
    """

    def __init__(
        self,
        name: str,
        options: LinkOptions,
        *,
        position: Mapping[str, JsonValue] | None = None,
        notices: Notices = log_notice,
        probe_topic: str | None = None,
        batch_max: int = BATCH_MAX,
        queue_messages: int = QUEUE_MESSAGES,
        queue_bytes: int = QUEUE_BYTES,
    ) -> None:
        self.name = name
        self._options = options
        self._notices = notices
        self._probe_topic = probe_topic
        self._batch_max = batch_max
        self._queue_messages = queue_messages
        self._queue_bytes = queue_bytes
        self._subscriptions = Subscriptions(options.filters, _held(position or {}, options.session))
        self._counters = Counters()
        # A connection's name must never be given twice, also not by an earlier process: a fresh prefix a
        # source.
        prefix = uuid.uuid4().hex[:8]
        self._names = (f"{prefix}-{number}" for number in itertools.count(1))
        self._mailbox: Mailbox | None = None
        self._inbox: Inbox | None = None
        self._link: Link | None = None
        self._paused = False

    async def batches(self) -> AsyncIterator[Sequence[Delivery]]:
        if self._paused:
            return
        if self._link is not None:
            await asyncio.to_thread(self._link.join, QUICK_JOIN_S)  # a refused one is about to end
        inbox = self._connect()
        while batch := await inbox.take(self._batch_max):
            yield batch

    async def ack(self, deliveries: Sequence[Delivery]) -> None:
        """Acknowledge what is on disk.

        Only QoS 1 is acknowledged, and only over the connection that brought it.
        """
        if self._mailbox is None:
            return
        confirmed = (delivery for delivery in deliveries if delivery.qos == 1)
        for connection, group in itertools.groupby(confirmed, key=lambda delivery: delivery.connection):
            self._mailbox.acks.append((connection, [delivery.position for delivery in group]))
        self._mailbox.wake()

    async def pause(self) -> None:
        """Stop reading from the broker.

        It keeps what it has for us, and our session; acknowledgements still go out.
        """
        self._paused = True
        if self._mailbox is not None:
            self._mailbox.paused = True
            self._mailbox.wake()
        if self._inbox is not None:
            self._inbox.end()

    async def close(self) -> None:
        """Send the acknowledgements that are due, then disconnect; the broker keeps the session."""
        if self._link is None or self._mailbox is None:
            return
        self._mailbox.stopping.set()
        self._mailbox.wake()
        # A thread that is still trying to connect has nothing to say, and ends by itself.
        wait_s = JOIN_S if self._counters.connected else QUICK_JOIN_S
        await asyncio.to_thread(self._link.join, wait_s)

    async def check(self) -> Check:
        """Visit the broker under another client id: may we connect, subscribe, and be heard?"""
        return await asyncio.to_thread(visit, self._options, self._probe_topic)

    @property
    def subscribed(self) -> Mapping[str, int]:
        """The topic filters that the broker holds for our session, with their QoS."""
        return self._subscriptions.held

    @property
    def position(self) -> Mapping[str, JsonValue]:
        """What the broker holds for us: so nothing is subscribed twice, and a lost session is noticed."""
        return {"session": self._options.session, "subscribed": dict(self._subscriptions.held)}

    def stats(self) -> SourceStats:
        counters = self._counters
        return SourceStats(
            connected=counters.connected,
            connects=counters.connects,
            received=counters.received,
            acked=counters.acked,
            queue_depth=0 if self._inbox is None else len(self._inbox),
            dropped_qos0=counters.dropped_qos0,
            resent=counters.resent,
            odd_topics=counters.odd_topics,
            session_lost=counters.session_lost,
            last_error=counters.last_error,
        )

    def _connect(self) -> Inbox:
        if self._link is not None and self._link.alive:
            raise SourceError(f"source {self.name} is being read already")
        loop = asyncio.get_running_loop()
        mailbox = Mailbox()
        inbox = Inbox(
            loop, on_room=mailbox.wake, messages_max=self._queue_messages, bytes_max=self._queue_bytes
        )
        self._mailbox, self._inbox = mailbox, inbox
        self._link = Link(
            self.name,
            self._options,
            inbox=inbox,
            mailbox=mailbox,
            subscriptions=self._subscriptions,
            counters=self._counters,
            tell=lambda kind, detail, count: self._tell(loop, kind, detail, count),
            next_name=lambda: next(self._names),
        )
        self._link.start()
        return inbox

    def _tell(self, loop: asyncio.AbstractEventLoop, kind: NoticeKind, detail: str, count: int) -> None:
        # The loop is closed when the process ends without closing its sources.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(self._notices, Notice(self.name, kind, detail, count))


def _held(position: Mapping[str, JsonValue], session: str) -> dict[str, int]:
    """The subscriptions of the persisted position, if they belong to this session."""
    subscribed = position.get("subscribed")
    if position.get("session") != session or not isinstance(subscribed, dict):
        return {}
    return {name: qos for name, qos in subscribed.items() if isinstance(qos, int)}
