"""/metrics and /healthz over HTTP/1.1, inside the service's event loop.

In the loop on purpose: a loop that hangs does not answer, and that is the truth. Everything is bounded: the
size of a request, the time of a connection, the number of connections. Parsing is h11's.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import h11

from pipeline.telemetry.metrics import Metrics

# A request line and a few headers; more is a mistake or an attack.
REQUEST_BYTES = 8192

# From accept to the last byte of the answer. A scrape takes milliseconds; a client that drips bytes is cut
# off.
CONNECTION_S = 5.0

# Prometheus, a probe and a person at a terminal, several times over.
CONNECTIONS = 16


@dataclass(frozen=True, slots=True)
class Health:
    """`live`: the service does its work. `ready`: it takes messages. `detail` is shown as it is, such as the
    model's state.

    Ready does not wait for the model: until it is loaded, unknown lines wait in the store.
    """

    live: bool
    ready: bool
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: bytes
    content_type: str = "text/plain; charset=utf-8"
    headers: tuple[tuple[str, str], ...] = ()


class TelemetryServer:
    """Serves `metrics` and `health()` on `host`:`port` between `start` and `close`.

    With port 0 the system chooses one; `port` tells which. `start` raises OSError when the address cannot be
    bound.
    """

    def __init__(
        self, metrics: Metrics, health: Callable[[], Health], host: str = "127.0.0.1", port: int = 9108
    ) -> None:
        self.host = host
        self.port = port
        self._metrics = metrics
        self._health = health
        self._open = 0
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, self.host, self.port, limit=REQUEST_BYTES)
        self.port = self._server.sockets[0].getsockname()[1]

    async def close(self) -> None:
        """Stop listening. Answers that are being sent end by themselves, within CONNECTION_S."""
        if self._server is not None:
            self._server.close()
            self._server = None

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            async with asyncio.timeout(CONNECTION_S):
                await self._exchange(reader, writer)
        except (TimeoutError, ConnectionError):
            writer.transport.abort()  # the client is too slow or gone: nobody is left to tell
        finally:
            self._open -= 1
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = h11.Connection(h11.SERVER, max_incomplete_event_size=REQUEST_BYTES)
        try:
            request = await _request(connection, reader)
        except h11.RemoteProtocolError as error:
            answer, head_only = _Answer(error.error_status_hint, f"{error}\n".encode()), False
        else:
            if request is None:
                return  # connected and left without asking
            busy = self._open > CONNECTIONS
            answer = _Answer(503, b"too many connections\n") if busy else self._answer(request)
            head_only = request.method == b"HEAD"
        writer.write(_encode(connection, answer, head_only))
        await writer.drain()

    def _answer(self, request: h11.Request) -> _Answer:
        if request.method not in (b"GET", b"HEAD"):
            return _Answer(405, b"only GET\n", headers=(("Allow", "GET, HEAD"),))
        path = request.target.split(b"?", 1)[0]
        if path == b"/metrics":
            return _Answer(200, self._metrics.exposition(), "text/plain; version=0.0.4; charset=utf-8")
        if path == b"/healthz":
            return self._healthz()
        return _Answer(404, b"here are /metrics and /healthz\n")

    def _healthz(self) -> _Answer:
        health = self._health()
        body = json.dumps({"live": health.live, "ready": health.ready, **health.detail}, default=str)
        status = 200 if health.live and health.ready else 503
        return _Answer(status, body.encode() + b"\n", "application/json")


async def _request(connection: h11.Connection, reader: asyncio.StreamReader) -> h11.Request | None:
    """The request's head, or None when the client closed before it had sent anything. A body is never read.

    Raises h11.RemoteProtocolError for what is no HTTP request, or too long a one.
    """
    while True:
        event = connection.next_event()
        if isinstance(event, h11.Request):
            return event
        if event is h11.NEED_DATA:
            connection.receive_data(await reader.read(REQUEST_BYTES))
        else:
            return None


def _encode(connection: h11.Connection, answer: _Answer, head_only: bool) -> bytes:
    """The whole answer. The connection closes after it, so that a body which was not read cannot be taken for
    a request.
    """
    headers = [
        ("Content-Type", answer.content_type),
        ("Content-Length", str(len(answer.body))),
        ("Cache-Control", "no-store"),
        ("X-Content-Type-Options", "nosniff"),
        ("Connection", "close"),
        *answer.headers,
    ]
    head = connection.send(h11.Response(status_code=answer.status, headers=headers))
    return (head or b"") + (b"" if head_only else answer.body)
