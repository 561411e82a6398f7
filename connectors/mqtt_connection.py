"""One connection to the broker: reads until it may not, acknowledges in order, pings, and knows why it
ended.

Everything here runs on the link's thread (see mqtt_link.py). When the queue towards the journal is full:

* a QoS 0 message is dropped and counted; it promised nothing, and reading on keeps the connection alive;
* a QoS 1 message is kept, and reading stops until half of the queue is taken. The broker keeps the rest: it
  stops at Receive Maximum unacknowledged messages (MQTT 5) or at its own in-flight limit, and TCP stops it
  otherwise. Pings and acknowledgements still go out, so that the broker does not take us for dead. What the
  broker does with QoS 0 messages meanwhile is its own affair, and nobody tells us.

A message that arrived over a connection that has ended since stays in the queue and is journaled. The broker
sends it again, and dedupe finds the pair; throwing the first one away could lose it if the broker has
forgotten it meanwhile.
"""

from __future__ import annotations

import contextlib
import select
import socket
import time
from typing import cast

import paho.mqtt.client as paho
from paho.mqtt.enums import MQTTErrorCode
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from connectors.base import Delivery, NoticeKind
from connectors.inbox import Inbox
from connectors.mqtt_client import (
    CONNECT_S,
    PINGREQ,
    LastError,
    Publish,
    corked,
    hang_up,
    make_client,
    no_delay,
    subscribe,
)
from connectors.mqtt_mailbox import Counters, Mailbox, Tell
from connectors.mqtt_session import (
    FAILURE,
    PROTOCOL_ERROR,
    UNSUPPORTED_VERSION,
    AckWindow,
    Cause,
    Ending,
    LinkOptions,
    Subscriptions,
)

# Packets read before acknowledgements, pings and the event loop get their turn: about two milliseconds of
# work.
BURST = 64

# The longest sleep of the thread: within it, a missed wake-up or a due ping is noticed.
TICK_S = 1.0

# For the broker to close after our DISCONNECT. It does so at once; a dead link must not hold up a shutdown.
HANG_UP_S = 3.0


class Connection:
    """One connection to the broker, from CONNECT to its end. Used by the link's thread only."""

    def __init__(
        self,
        options: LinkOptions,
        name: str,
        *,
        inbox: Inbox,
        mailbox: Mailbox,
        subscriptions: Subscriptions,
        counters: Counters,
        tell: Tell,
    ) -> None:
        self.name = name
        self._options = options
        self._inbox = inbox
        self._mailbox = mailbox
        self._subscriptions = subscriptions
        self._counters = counters
        self._tell = tell
        self._window = AckWindow()
        self._asked: dict[int, dict[str, int]] = {}
        self._released: dict[int, list[str]] = {}
        self._ending: Ending | None = None
        self._accepted_at: float | None = None
        self._keepalive_s: float = options.keepalive_s
        self._overfull = False
        self._more = False
        self._dropping = 0
        self._odd_topic_told = False
        self._heard_at = self._pinged_at = self._opened_at = time.monotonic()
        self._paho_error = LastError()
        self._poll = select.poll()
        self._client = self._make_client()

    def _make_client(self) -> paho.Client:
        client = make_client(self._options, self._on_publish)
        client.enable_logger(self._paho_error.logger())
        client.on_connect = self._on_connect
        client.on_disconnect = self._on_disconnect
        client.on_subscribe = self._on_subscribe
        client.on_unsubscribe = self._on_unsubscribe
        client.on_message = self._on_message
        # With this set, paho only queues what it has to send: acknowledgements then go out together.
        client.on_socket_register_write = lambda *_: None
        client.on_socket_open = lambda _client, _data, opened: no_delay(opened)
        return client

    def run(self) -> Ending:
        """Connect and serve until the connection ends. Never raises: what goes wrong is the ending."""
        try:
            self._client.reconnect()
        except (OSError, ValueError) as error:
            return Ending(Cause.UNREACHABLE, str(error) or type(error).__name__)
        self._opened_at = self._heard_at = self._pinged_at = time.monotonic()
        self._poll.register(self._mailbox.fileno(), select.POLLIN)
        try:
            while self._ending is None:
                self._turn()
        except (
            Exception
        ) as error:  # paho's parsing or our own callbacks: this connection is not to be trusted any more
            self._end(Cause.BROKEN, f"{type(error).__name__}: {error}")
        finally:
            self._cut()
        assert self._ending is not None
        return self._ending

    # One turn of the loop.

    def _turn(self) -> None:
        if self._readable():
            self._read()
        self._inbox.flush()
        self._send_acks()
        if self._client.want_write():
            self._write()
        if self._ending is None and self._client.socket() is None:
            self._end(Cause.CLOSED, self._paho_error.text or "the broker closed the connection")
        if self._ending is None:
            self._keep_alive(time.monotonic())
        if self._ending is None and self._mailbox.stopping.is_set():
            self._end(Cause.ASKED, "closed")
            self._send_acks()  # once more: the last ones may have come between the first time and the request
            hang_up(self._client, HANG_UP_S)

    def _readable(self) -> bool:
        """Sleep until there is something to do; True when the socket should be read."""
        live = self._client.socket()
        if live is None:
            return False
        held = self._held()
        if self._more and not held:
            return True
        descriptor = live.fileno()
        wanted = (0 if held else select.POLLIN) | (select.POLLOUT if self._client.want_write() else 0)
        self._poll.register(descriptor, wanted)
        events = dict(self._poll.poll(self._sleep_s() * 1000))
        if self._mailbox.fileno() in events:
            self._mailbox.clear()
        # An error or a hang-up is reported unasked, also while reading is stopped.
        return bool(events.get(descriptor, 0) & ~select.POLLOUT)

    def _sleep_s(self) -> float:
        return min(TICK_S, self._keepalive_s / 4)

    def _held(self) -> bool:
        """Whether reading has to wait: the source is paused, or its queue is full of QoS 1 messages."""
        if self._overfull:
            self._overfull = not self._inbox.wait_for_room()
        return self._overfull or (self._mailbox.paused and self._accepted_at is not None)

    def _read(self) -> None:
        self._heard_at = time.monotonic()
        for _ in range(BURST):
            before = self._counters.received
            gone = self._client.loop_read() != MQTTErrorCode.MQTT_ERR_SUCCESS
            if gone or self._counters.received == before:
                self._more = False
                return
            if self._overfull:
                break
        self._more = True  # perhaps: TLS may hold decrypted bytes that poll does not see

    def _write(self) -> None:
        """Send what paho has queued in as few packets as possible: an acknowledgement has four bytes."""
        with corked(self._client.socket()):
            self._client.loop_write()

    def _send_acks(self) -> None:
        acks = self._mailbox.acks
        while acks:
            connection, mids = acks.popleft()
            if connection != self.name:
                continue  # an id of an earlier connection may stand for another message by now
            for mid in self._window.settle(mids):
                self._client.ack(mid, 1)
                self._counters.acked += 1

    def _keep_alive(self, now: float) -> None:
        if self._accepted_at is None:
            if now - self._opened_at > CONNECT_S:
                self._end(Cause.UNREACHABLE, f"no answer to CONNECT within {CONNECT_S:g} s")
            return
        if self._held():
            self._heard_at = now  # nothing is read, so nothing can be heard
        elif now - self._heard_at > 1.5 * self._keepalive_s:
            self._end(Cause.SILENT, f"nothing heard from the broker for {now - self._heard_at:.0f} s")
            return
        live = self._client.socket()
        if (
            now - self._pinged_at >= self._keepalive_s / 2
            and live is not None
            and not self._client.want_write()
        ):
            # paho's own ping waits for an answer, which cannot be read while reading is stopped: it would
            # hang up.
            self._pinged_at = now
            if live.send(PINGREQ) != len(PINGREQ):
                self._end(Cause.BROKEN, "a ping was sent in part")

    # paho's callbacks, all on this thread. One that raises ends the connection, and its message comes again.

    def _on_connect(
        self,
        _client: paho.Client,
        _data: object,
        flags: paho.ConnectFlags,
        reason: ReasonCode,
        properties: Properties | None,
    ) -> None:
        if reason.is_failure:
            self._end(Cause.REFUSED, str(reason), reason.value)
            return
        self._accepted_at = time.monotonic()
        self._keepalive_s = getattr(properties, "ServerKeepAlive", None) or self._options.keepalive_s
        self._counters.connected = True
        self._counters.last_error = None
        self._counters.connects += 1
        self._tell(NoticeKind.CONNECTED, f"connected to {self._options.broker}", 1)
        if self._subscriptions.on_session(flags.session_present):
            self._counters.session_lost += 1
            self._tell(
                NoticeKind.SESSION_LOST,
                f"{self._options.broker} has forgotten the session {self._options.client_id}: "
                "messages that it had not delivered yet are gone",
                1,
            )
        self._change_subscriptions()

    def _change_subscriptions(self) -> None:
        missing, surplus = self._subscriptions.missing(), self._subscriptions.surplus()
        if surplus and (mid := self._client.unsubscribe(surplus)[1]) is not None:
            self._released[mid] = surplus
        if missing and (mid := subscribe(self._client, missing, mqtt5=self._options.mqtt5)) is not None:
            self._asked[mid] = missing

    def _on_subscribe(
        self,
        _client: paho.Client,
        _data: object,
        mid: int,
        codes: list[ReasonCode],
        _properties: Properties | None,
    ) -> None:
        asked = self._asked.pop(mid, {})
        self._subscriptions.on_granted(asked, [code.value for code in codes])
        for (name, qos), code in zip(asked.items(), codes, strict=True):
            if code.value >= FAILURE:
                self._tell(NoticeKind.SUBSCRIPTION_REFUSED, f"the broker refuses {name}: {code}", 1)
                self._counters.last_error = f"the broker refuses the subscription {name}: {code}"
            elif code.value < qos:
                self._tell(NoticeKind.QOS_LOWERED, f"the broker grants {name} QoS {code.value} only", 1)
        self._tell(NoticeKind.SUBSCRIBED, ", ".join(self._subscriptions.held) or "nothing", 1)
        if self._subscriptions.all_refused:
            self._end(Cause.REFUSED, f"every subscription is refused ({', '.join(asked)})", codes[0].value)

    def _on_unsubscribe(
        self,
        _client: paho.Client,
        _data: object,
        mid: int,
        _codes: list[ReasonCode],
        _properties: Properties | None,
    ) -> None:
        self._subscriptions.on_released(self._released.pop(mid, []))
        self._tell(NoticeKind.SUBSCRIBED, ", ".join(self._subscriptions.held) or "nothing", 1)

    def _on_disconnect(
        self,
        _client: paho.Client,
        _data: object,
        flags: paho.DisconnectFlags,
        reason: ReasonCode,
        _p: Properties | None,
    ) -> None:
        if flags.is_disconnect_packet_from_server:
            self._end(Cause.SENT_AWAY, str(reason), reason.value)
        elif reason.value == PROTOCOL_ERROR and self._accepted_at is None:
            # How paho tells of an MQTT 3.1.1 broker that refuses the version: without calling on_connect.
            self._end(Cause.REFUSED, str(reason), UNSUPPORTED_VERSION)
        else:
            self._end(Cause.CLOSED, self._paho_error.text or "the broker closed the connection")

    def _on_message(self, _client: paho.Client, _data: object, message: paho.MQTTMessage) -> None:
        """For a paho that reads PUBLISH itself again.

        An invalid topic is found in the exception it raises.
        """
        try:
            topic = message.topic.encode()
        except UnicodeDecodeError as error:
            topic = error.object
        self._on_publish(
            Publish(topic, bytes(message.payload), message.mid, message.qos, message.retain, message.dup)
        )

    def _on_publish(self, publish: Publish) -> None:
        self._counters.received += 1
        if publish.qos > 1:
            raise ValueError(f"the broker sends QoS {publish.qos}, which was not subscribed")
        if self._inbox.full:
            if publish.qos == 0:
                self._drop()
                return
            self._overfull = True  # this one is kept, and nothing more is read until there is room
        elif self._dropping:
            self._stop_dropping()
        if publish.qos == 1 and not self._window.arrive(publish.mid):
            self._counters.resent += 1
            return
        self._inbox.put(
            Delivery(
                topic=self._topic(publish.topic),
                payload=publish.payload,
                received_at_us=time.time_ns() // 1000,
                qos=publish.qos,
                retain=publish.retain,
                duplicate=publish.duplicate,
                position=publish.mid,
                connection=self.name,
            )
        )

    def _topic(self, raw: bytes) -> str:
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            text = raw.decode("utf-8", "backslashreplace")
            self._counters.odd_topics += 1
            if not self._odd_topic_told:
                self._odd_topic_told = True  # once a connection; the counter knows how many
                self._tell(NoticeKind.ODD_TOPIC, f"the topic {text} is no valid UTF-8", 1)
            return text

    def _drop(self) -> None:
        self._counters.dropped_qos0 += 1
        self._dropping += 1
        if self._dropping == 1:
            self._tell(NoticeKind.DROPPED, "the queue is full: QoS 0 messages are being dropped", 1)

    def _stop_dropping(self) -> None:
        if self._dropping > 1:  # the first one has been told
            text = f"{self._dropping} QoS 0 messages were dropped while the queue was full"
            self._tell(NoticeKind.DROPPED, text, self._dropping - 1)
        self._dropping = 0

    # The end.

    def _end(self, cause: Cause, text: str, code: int = 0) -> None:
        if self._ending is None:
            lived_s = 0.0 if self._accepted_at is None else time.monotonic() - self._accepted_at
            if cause is Cause.CLOSED and self._accepted_at is None:
                cause = Cause.UNREACHABLE
                text = f"{text}, and no answer to CONNECT; {self._options.no_answer_hint}"
            self._ending = Ending(cause, text, code, lived_s)

    def _cut(self) -> None:
        """Make sure the socket is gone, whatever state paho is in."""
        self._counters.connected = False
        if self._dropping:
            self._stop_dropping()
        live = self._client.socket()
        if live is not None:
            with contextlib.suppress(OSError):
                cast(socket.socket, live).shutdown(socket.SHUT_RDWR)
            live.close()
