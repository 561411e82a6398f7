"""An MQTT broker that does what the test says, also what no good broker does."""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import Awaitable, Callable
from typing import NamedTuple, Self

CONNECT, PUBLISH, PUBACK, SUBSCRIBE, UNSUBSCRIBE, PINGREQ, DISCONNECT = 1, 3, 4, 8, 10, 12, 14


class Packet(NamedTuple):
    kind: int
    flags: int
    body: bytes

    @property
    def mid(self) -> int:
        return int.from_bytes(self.body[:2], "big")


class Peer:
    """The broker's side of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.mqtt5 = True
        self.connect = b""

    async def receive(self) -> Packet:
        """The next packet. Raises IncompleteReadError when the client has gone."""
        first = (await self._reader.readexactly(1))[0]
        length = shift = 0
        while True:
            byte = (await self._reader.readexactly(1))[0]
            length |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return Packet(first >> 4, first & 0x0F, await self._reader.readexactly(length))

    async def until(self, kind: int) -> Packet:
        """The next packet of this kind; others are passed over."""
        while (packet := await self.receive()).kind != kind:
            pass
        return packet

    async def accept(self, *, present: bool = False, code: int = 0, properties: bytes = b"") -> None:
        """Read CONNECT and answer it."""
        self.connect = (await self.until(CONNECT)).body
        self.mqtt5 = self.connect[6] == 5
        self.send(0x20, bytes([present, code]) + self.properties(properties))

    async def grant(self, *codes: int) -> Packet:
        """Read SUBSCRIBE and answer it."""
        asked = await self.until(SUBSCRIBE)
        self.send(0x90, asked.body[:2] + self.properties() + bytes(codes or [1]))
        return asked

    def publish(
        self,
        topic: bytes,
        payload: bytes,
        mid: int = 0,
        *,
        retain: bool = False,
        duplicate: bool = False,
        properties: bytes = b"",
    ) -> None:
        """QoS 1 with a packet id, else QoS 0."""
        head = 0x30 | (2 if mid else 0) | retain | (8 if duplicate else 0)
        packet_id = struct.pack("!H", mid) if mid else b""
        self.send(
            head, struct.pack("!H", len(topic)) + topic + packet_id + self.properties(properties) + payload
        )

    def properties(self, content: bytes = b"") -> bytes:
        return bytes([len(content)]) + content if self.mqtt5 else b""

    def send(self, first: int, body: bytes) -> None:
        length = bytearray()
        left = len(body)
        while True:
            left, low = left >> 7, left & 0x7F
            length.append(low | (0x80 if left else 0))
            if not left:
                break
        self._writer.write(bytes([first]) + length + body)

    def hang_up(self) -> None:
        self._writer.close()


Script = Callable[[Peer], Awaitable[None]]


class ScriptedBroker:
    """Runs `script` for each connection, one after the other as they come; `peers` keeps them all."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self.peers: list[Peer] = []
        self.failures: list[BaseException] = []
        self.port = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer)
        self.peers.append(peer)
        try:
            await self._script(peer)
            with contextlib.suppress(asyncio.IncompleteReadError, OSError):
                while True:  # stay connected until the client goes
                    await peer.receive()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self.failures.append(error)
        finally:
            writer.close()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        assert not self.failures, self.failures
