"""A TCP proxy whose faults change while it runs: a black hole, resets, a closed door."""

from __future__ import annotations

import asyncio
import socket
import struct
from typing import Self


class Proxy:
    """Listens on `port` and passes everything on to `target` on loopback.

    `hole = True` swallows what both sides send and tells nobody, as a cut cable does.
    """

    def __init__(self, target: int) -> None:
        self.target = target
        self.port = 0
        self.hole = False
        self.accepted = 0
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def shut(self) -> None:
        """Refuse new connections and reset those that there are."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.reset()

    def reset(self) -> None:
        for writer in list(self._writers):
            live = writer.get_extra_info("socket")
            if live is not None:
                live.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, far_writer}
        try:
            await asyncio.gather(self._pump(reader, far_writer), self._pump(far_reader, writer))
        finally:
            self._writers -= {writer, far_writer}
            writer.close()
            far_writer.close()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65_536):
                if not self.hole:
                    writer.write(data)
                    await writer.drain()
            if not self.hole:
                writer.write_eof()  # one direction only: the other may still have something to say
        except OSError:
            writer.transport.abort()

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, *_: object) -> None:
        await self.shut()
        await asyncio.sleep(0)
