"""A publisher that keeps a ledger: what the broker has confirmed (PUBACK), and nothing else."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import Self

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

Sent = tuple[str, bytes]

# Messages under way to the broker, whose own limit is 20 a client.
IN_FLIGHT = 20

PATIENCE_S = 60.0


class Publisher:
    """Publishes QoS 1 messages in order, from a thread of its own, until all are out.

    `ledger` counts the confirmed ones by topic and payload: equal messages are as many entries. MQTT 3.1.1,
    where a PUBACK always means that the broker has taken the message.
    """

    def __init__(self, port: int, messages: Iterable[Sent], client_id: str = "plant") -> None:
        self.messages: Sequence[Sent] = list(messages)
        self.ledger: Counter[Sent] = Counter()
        self._stop = threading.Event()
        self._connected = threading.Event()
        self._client = paho.Client(CallbackAPIVersion.VERSION2, client_id, protocol=paho.MQTTv311)
        self._client.max_inflight_messages_set(IN_FLIGHT)
        self._client.on_connect = lambda *_: self._connected.set()
        self._client.connect("127.0.0.1", port)
        self._thread = threading.Thread(target=self._run, name="publisher")

    @property
    def confirmed(self) -> int:
        return self.ledger.total()

    @property
    def done(self) -> bool:
        return self.confirmed == len(self.messages)

    def wait(self) -> None:
        """Until every message is confirmed."""
        self._thread.join(PATIENCE_S)
        assert self.done, f"{self.confirmed} of {len(self.messages)} were confirmed"

    def _run(self) -> None:
        self._connected.wait()
        under_way: deque[tuple[paho.MQTTMessageInfo, Sent]] = deque()
        for sent in self.messages:
            under_way.append((self._client.publish(*sent, qos=1), sent))
            while len(under_way) >= IN_FLIGHT and not self._stop.is_set():
                self._enter(under_way)
        while under_way and not self._stop.is_set():
            self._enter(under_way)

    def _enter(self, under_way: deque[tuple[paho.MQTTMessageInfo, Sent]]) -> None:
        """Enter the oldest message once it is confirmed; others may be confirmed before it, and wait."""
        info, sent = under_way[0]
        info.wait_for_publish(0.1)
        if info.is_published():
            under_way.popleft()
            self.ledger[sent] += 1

    def __enter__(self) -> Self:
        self._client.loop_start()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._connected.set()
        self._thread.join()
        self._client.disconnect()
        self._client.loop_stop()
