"""The baseline of the MQTT bench: the least that a subscriber does who loses nothing.

paho with acknowledgement by hand; what has arrived during the last commit goes into the next one (WAL,
synchronous=FULL), and is acknowledged after it. Nothing is decoded, read, decided or settled.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import deque
from contextlib import closing
from pathlib import Path

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from pipeline.bench.broker import Broker
from pipeline.bench.passage import BARE, EXPIRY_S, PATIENCE_S, RECEIVE_MAXIMUM, Go, Passage, Side
from schemas.errors import AndonError

_TABLE = (
    "CREATE TABLE IF NOT EXISTS journal (seq INTEGER PRIMARY KEY AUTOINCREMENT, topic TEXT NOT NULL, "
    "payload BLOB NOT NULL, received_at_us INTEGER NOT NULL, mid INTEGER NOT NULL)"
)
_INSERT = "INSERT INTO journal (topic, payload, received_at_us, mid) VALUES (?, ?, ?, ?)"
Row = tuple[str, bytes | bytearray, int, int]


class Subscriber:
    """Journals messages in the thread that calls `run`; paho's network thread receives them."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self._broker = broker
        self._path = folder / "bare.db"
        self._waiting: deque[Row] = deque()
        self._arrived = threading.Event()
        self._client = client(broker, BARE.client_id)
        self._client.on_message = self._on_message

    def run(self, count: int, go: Go | None = None) -> Passage:
        """Connect and take `count` messages; with `go`, from then on."""
        began = time.perf_counter()
        subscribed = threading.Event()
        subscribe(self._client, BARE, subscribed)
        connect(self._client, self._broker)
        self._client.loop_start()
        try:
            with closing(self._open()) as store:
                written = _bytes_written()
                if go is not None:
                    subscribed.wait(PATIENCE_S)
                    began = go()
                commits = self._journal(store, count)
                seconds = time.perf_counter() - began
                store.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                return Passage(count, seconds, commits, _bytes_written() - written)
        finally:
            self._client.disconnect()
            self._client.loop_stop()

    def _open(self) -> sqlite3.Connection:
        store = sqlite3.connect(self._path, isolation_level=None)
        store.execute("PRAGMA journal_mode=WAL")
        store.execute("PRAGMA synchronous=FULL")
        store.execute(_TABLE)
        return store

    def _journal(self, store: sqlite3.Connection, count: int) -> int:
        """Until `count` messages are on disk and acknowledged; the number of commits."""
        commits = taken = 0
        while taken < count:
            if not self._arrived.wait(PATIENCE_S):
                raise AndonError(f"bench: the bare subscriber got {taken} of {count} messages")
            self._arrived.clear()
            batch = [self._waiting.popleft() for _ in range(len(self._waiting))]
            if not batch:
                continue
            store.execute("BEGIN IMMEDIATE")
            store.executemany(_INSERT, batch)
            store.execute("COMMIT")
            for row in batch:
                self._client.ack(row[3], 1)
            taken += len(batch)
            commits += 1
        return commits

    def _on_message(self, _client: paho.Client, _data: object, message: paho.MQTTMessage) -> None:
        self._waiting.append((message.topic, message.payload, time.time_ns() // 1000, message.mid))
        self._arrived.set()


def client(broker: Broker, client_id: str) -> paho.Client:
    """A client of a persistent session that acknowledges by hand."""
    if broker.mqtt5:
        return paho.Client(
            CallbackAPIVersion.VERSION2, client_id=client_id, protocol=paho.MQTTv5, manual_ack=True
        )
    return paho.Client(
        CallbackAPIVersion.VERSION2,
        client_id=client_id,
        clean_session=False,
        protocol=paho.MQTTv311,
        manual_ack=True,
    )


def subscribe(client: paho.Client, side: Side, subscribed: threading.Event) -> None:
    """Subscribe to the side's topic at every connect; `subscribed` is set once that is confirmed."""

    def on_connect(client: paho.Client, *_: object) -> None:
        client.subscribe(side.topic, qos=1)

    client.on_connect = on_connect
    client.on_subscribe = lambda *_: subscribed.set()


def connect(client: paho.Client, broker: Broker) -> None:
    if not broker.mqtt5:
        client.connect("127.0.0.1", broker.port)
        return
    properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    properties.SessionExpiryInterval = EXPIRY_S
    properties.ReceiveMaximum = RECEIVE_MAXIMUM
    client.connect("127.0.0.1", broker.port, clean_start=False, properties=properties)


def _bytes_written() -> int:
    """Bytes that this thread gave to the kernel; 0 where it does not count."""
    try:
        text = Path(f"/proc/self/task/{threading.get_native_id()}/io").read_text(encoding="ascii")
    except OSError:
        return 0
    return int(dict(line.split(": ") for line in text.splitlines())["wchar"])
