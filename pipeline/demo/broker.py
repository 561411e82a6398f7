"""An MQTT broker inside the process, for the demo and for machines without one. MQTT 3.1.1, loopback only,
nothing kept."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from types import TracebackType

from amqtt.broker import Broker


def free_port() -> int:
    """A loopback port nobody listens at now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class EmbeddedBroker:
    """`with EmbeddedBroker(port):` serves MQTT on 127.0.0.1:port. It has a thread and a loop of its own, so
    that what is measured beside it is not held up by it more than the interpreter requires."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="demo-broker", daemon=True)

    def __enter__(self) -> EmbeddedBroker:
        logging.getLogger("amqtt").setLevel(logging.ERROR)
        logging.getLogger("transitions").setLevel(logging.ERROR)
        self._thread.start()
        self._broker = asyncio.run_coroutine_threadsafe(self._start(), self._loop).result(10)
        return self

    async def _start(self) -> Broker:
        broker = Broker(
            {
                "listeners": {"default": {"type": "tcp", "bind": f"127.0.0.1:{self.port}"}},
                "plugins": {
                    "amqtt.plugins.authentication.AnonymousAuthPlugin": {"allow_anonymous": True},
                },
            }
        )
        await broker.start()
        return broker

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._broker.shutdown(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()
