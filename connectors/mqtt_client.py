"""paho-mqtt, set up our way: one client object a connection, driven by one thread, reading PUBLISH without
properties.

Checked with paho-mqtt 2.2.
"""

from __future__ import annotations

import contextlib
import logging
import select
import socket
import ssl
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, NamedTuple, cast

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions

from connectors.mqtt_session import LinkOptions

if TYPE_CHECKING:
    from paho.mqtt.client import SocketLike  # exists for type checkers only

# TCP connect, TLS handshake, and then CONNACK must each come within this: a broker on a plant's network
# answers in milliseconds, and a remote one over a mobile link in a few seconds.
CONNECT_S = 10.0

PINGREQ = b"\xc0\x00"  # MQTT 5.0, 3.12


class Publish(NamedTuple):
    """A PUBLISH packet as it stood on the wire."""

    topic: bytes
    payload: bytes
    mid: int
    qos: int
    retain: bool
    duplicate: bool


def read_publish(header: int, packet: bytes | bytearray, *, mqtt5: bool) -> Publish:
    """Take a PUBLISH apart (MQTT 5.0, 3.3).

    Its properties are skipped unread. Raises ValueError when it is cut short.
    """
    qos = header >> 1 & 3
    end = 2 + int.from_bytes(packet[:2], "big")
    topic = bytes(packet[2:end])
    mid = 0
    if qos:
        mid = int.from_bytes(packet[end : end + 2], "big")
        end += 2
    if mqtt5:
        end = _after_properties(packet, end)
    if end > len(packet) or not topic:
        raise ValueError("a PUBLISH packet is cut short or has no topic")
    return Publish(topic, bytes(packet[end:]), mid, qos, bool(header & 1), bool(header & 8))


def _after_properties(packet: bytes | bytearray, start: int) -> int:
    """Where the payload begins: behind a variable byte integer (at most 4 bytes) and so many bytes."""
    length = 0
    for count in range(4):
        byte = packet[start + count] if start + count < len(packet) else 0x80
        length |= (byte & 0x7F) << 7 * count
        if not byte & 0x80:
            return start + count + 1 + length
    raise ValueError("a PUBLISH packet's properties have no length")


class Client(paho.Client):
    """paho's client, but for how it reads a PUBLISH.

    paho rejects the whole connection for one message whose user properties it dislikes (a NUL, a byte order
    mark); the broker then sends that message again, and so for ever. We need no properties, and reading them
    is half of paho's time a message. A paho that no longer calls this method would hand its own messages to
    `on_message`, which the link serves as well.
    """

    received: Callable[[Publish], None]

    def _handle_publish(self) -> MQTTErrorCode:
        packet = self._in_packet
        publish = read_publish(packet["command"], packet["packet"], mqtt5=self._protocol == paho.MQTTv5)
        self.received(publish)
        return MQTTErrorCode.MQTT_ERR_SUCCESS


class _HandshakeSocket(ssl.SSLSocket):
    """A TLS socket that closes when its handshake fails: paho would leave it to the garbage collector."""

    def do_handshake(self, block: bool = False) -> None:
        try:
            super().do_handshake(block)
        except OSError:
            self.close()
            raise


class LastError(logging.Handler):
    """Keeps the last error that paho logged: the only place where it says why a socket failed."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text = record.getMessage()

    def logger(self) -> logging.Logger:
        """A logger of its own, outside the program's logging, that ends here."""
        logger = logging.Logger("paho", logging.ERROR)
        logger.addHandler(self)
        return logger


def make_client(options: LinkOptions, received: Callable[[Publish], None]) -> Client:
    """A client for one connection that keeps its session: never a clean start, acknowledgements by hand."""
    client = Client(
        CallbackAPIVersion.VERSION2,
        client_id=options.client_id,
        clean_session=None if options.mqtt5 else False,
        protocol=paho.MQTTv5 if options.mqtt5 else paho.MQTTv311,
        reconnect_on_failure=False,  # the link reconnects, and paho must not fall back to MQTT 3.1 by itself
        manual_ack=True,
    )
    client.received = received
    _prepare(client, options)
    if options.mqtt5:
        # paho's own default would be a clean start on the first connection of every process.
        client.connect_async(
            options.host,
            options.port,
            options.keepalive_s,
            clean_start=False,
            properties=session_properties(options),
        )
    else:
        client.connect_async(options.host, options.port, options.keepalive_s)
    return client


def make_probe(options: LinkOptions, client_id: str) -> paho.Client:
    """A client for a short visit under another id, which leaves no session behind."""
    client = paho.Client(
        CallbackAPIVersion.VERSION2,
        client_id=client_id,
        clean_session=None if options.mqtt5 else True,
        protocol=paho.MQTTv5 if options.mqtt5 else paho.MQTTv311,
        reconnect_on_failure=False,
    )
    _prepare(client, options)
    if options.mqtt5:
        client.connect_async(options.host, options.port, options.keepalive_s, clean_start=True)
    else:
        client.connect_async(options.host, options.port, options.keepalive_s)
    return client


def _prepare(client: paho.Client, options: LinkOptions) -> None:
    client.connect_timeout = CONNECT_S
    if options.username is not None or options.password is not None:
        client.username_pw_set(options.username, options.password)
    if options.tls is not None:
        options.tls.sslsocket_class = _HandshakeSocket
        client.tls_set_context(options.tls)


def session_properties(options: LinkOptions) -> Properties:
    """Without an expiry an MQTT 5 session ends with its connection;

    Receive Maximum bounds what is unacknowledged.
    """
    properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    properties.SessionExpiryInterval = options.session_expiry_s
    properties.ReceiveMaximum = options.receive_maximum
    return properties


def subscribe(
    client: paho.Client, filters: dict[str, int], *, mqtt5: bool, retained: bool = True
) -> int | None:
    """Send one SUBSCRIBE for all filters; its packet id, or None when there is no connection.

    With MQTT 5 retained messages come only for filters that the session did not have yet, or not at all.
    """
    if mqtt5:
        handling = (
            SubscribeOptions.RETAIN_SEND_IF_NEW_SUB if retained else SubscribeOptions.RETAIN_DO_NOT_SEND
        )
        options = [
            (name, SubscribeOptions(qos=qos, retainHandling=handling)) for name, qos in filters.items()
        ]
        return client.subscribe(options)[1]
    return client.subscribe(list(filters.items()))[1]


def no_delay(opened: SocketLike) -> None:
    """Let what is written leave at once.

    TCP would hold small packets back until the last one is confirmed, up to 40 ms; a crash then makes the
    broker send again what is on disk already.
    """
    cast(socket.socket, opened).setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


@contextlib.contextmanager
def corked(live: SocketLike | None) -> Iterator[None]:
    """Gather small writes into full packets; they leave when the block ends."""
    if live is None:
        yield
        return
    option = (socket.IPPROTO_TCP, socket.TCP_CORK)
    cast(socket.socket, live).setsockopt(*option, 1)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):  # closed meanwhile
            cast(socket.socket, live).setsockopt(*option, 0)


def hang_up(client: paho.Client, within_s: float) -> None:
    """Send what is queued, then DISCONNECT, and wait until the broker has closed its side.

    A socket that is closed with unread bytes in it is reset, and a reset can throw away acknowledgements that
    the broker has not read yet. So a second handle keeps the connection open, says that we are done, and
    reads to the end.
    """
    live = client.socket()
    if live is None:
        return
    deadline = time.monotonic() + within_s
    with socket.socket(fileno=socket.dup(live.fileno())) as spare:
        client.disconnect()
        try:
            while client.want_write() and client.socket() is not None and time.monotonic() < deadline:
                select.select([], [spare], [], deadline - time.monotonic())
                client.loop_write()
            spare.shutdown(socket.SHUT_WR)
            while (left_s := deadline - time.monotonic()) > 0:
                spare.settimeout(left_s)
                if not spare.recv(65_536):
                    return
        except (OSError, ValueError):
            return  # gone already: what was sent cannot be helped any more
