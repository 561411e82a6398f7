"""Every way in which an HTTP answer can fail: late, lost, cut, dripping, or far too large."""

from __future__ import annotations

import asyncio
import gzip
import socket
import struct
import tracemalloc

import pytest
from ports import free_port
from ticketing import PLAIN, outcome, sink
from web import Request, Web, answer

from connectors.base import Receipt
from connectors.http import HttpSinkConfig
from schemas.errors import SinkBusy, SinkRejected, SinkUnknown
from schemas.extraction import Severity
from schemas.ticket import Ticket


async def test_nobody_listens() -> None:
    config = HttpSinkConfig(type="http", url=f"http://127.0.0.1:{free_port()}/")
    itsm = config.build("itsm")
    with pytest.raises(SinkBusy, match="no connection"):
        await itsm.create(PLAIN)
    assert not (await itsm.check()).ok
    await itsm.close()


async def test_a_name_that_does_not_exist() -> None:
    itsm = HttpSinkConfig(type="http", url="http://no-such-host.invalid/").build("itsm")
    with pytest.raises(SinkBusy, match="no connection"):
        await itsm.create(PLAIN)
    await itsm.close()


async def test_a_server_that_accepts_and_says_nothing_is_unknown() -> None:
    async def silent(_request: Request, _writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    with pytest.raises(SinkUnknown, match=r"within 0\.3 s"):
        await outcome(silent, timeout_s=0.3)


async def test_a_connection_that_is_never_accepted_sent_nothing() -> None:
    """The backlog is full: TCP does not even connect. Nothing went out, so it may simply be tried again."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = listener.getsockname()
        fillers = [socket.socket() for _ in range(8)]
        for filler in fillers:
            filler.setblocking(False)
            filler.connect_ex(address)
        await asyncio.sleep(0.05)
        itsm = HttpSinkConfig(type="http", url=f"http://127.0.0.1:{address[1]}/", timeout_s=0.4).build("itsm")
        with pytest.raises(SinkBusy, match="no connection"):
            await itsm.create(PLAIN)
        await itsm.close()
        for filler in fillers:
            filler.close()


async def test_a_lost_reply_is_unknown() -> None:
    async def hang_up(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.close()

    with pytest.raises(SinkUnknown) as caught:
        await outcome(hang_up)
    assert caught.value.retriable


async def test_a_reset_after_the_request_is_unknown() -> None:
    async def reset(_request: Request, writer: asyncio.StreamWriter) -> None:
        live = writer.get_extra_info("socket")
        live.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    with pytest.raises(SinkUnknown):
        await outcome(reset)


async def test_half_a_status_line_is_unknown() -> None:
    async def half(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 20")
        await writer.drain()

    with pytest.raises(SinkUnknown):
        await outcome(half)


async def test_nonsense_instead_of_http_is_unknown() -> None:
    async def nonsense(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 smtp ready\r\n\r\n")

    with pytest.raises(SinkUnknown):
        await outcome(nonsense)


async def test_headers_that_drip_meet_the_deadline() -> None:
    async def drip(_request: Request, writer: asyncio.StreamWriter) -> None:
        for byte in b"HTTP/1.1 201 Created\r\nX-Slow: " + b"x" * 1000:
            writer.write(bytes([byte]))
            await writer.drain()
            await asyncio.sleep(0.05)

    with pytest.raises(SinkUnknown):
        await outcome(drip, timeout_s=0.4)


@pytest.mark.parametrize("status", [201, 429, 422])
async def test_a_body_that_drips_meets_the_deadline_and_the_status_counts(status: int) -> None:
    async def drip(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(f"HTTP/1.1 {status} X\r\nContent-Length: 100000\r\nRetry-After: 9\r\n\r\n".encode())
        for _ in range(100_000):
            writer.write(b"x")
            await writer.drain()
            await asyncio.sleep(0.05)

    async with asyncio.timeout(10):
        if status == 201:
            with pytest.raises(SinkUnknown, match="without a reference") as unknown:
                await outcome(drip, timeout_s=0.4)
            assert unknown.value.answered
        elif status == 429:
            with pytest.raises(SinkBusy) as busy:
                await outcome(drip, timeout_s=0.4)
            assert busy.value.retry_after_s == 9.0
        else:
            with pytest.raises(SinkRejected) as rejected:
                await outcome(drip, timeout_s=0.4)
            assert rejected.value.body.startswith("xx")


async def test_a_reply_that_breaks_off_after_its_status_is_created() -> None:
    async def broken(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b'HTTP/1.1 201 X\r\nContent-Length: 100\r\nLocation: /t/1\r\n\r\n{"id":')
        await writer.drain()

    assert await outcome(broken) == Receipt("/t/1")


BOMB = gzip.compress(b"\0" * 200_000_000, 9)


@pytest.mark.parametrize("coding", ["gzip", "deflate", "x-gzip", "br", "zstd", "gzip, gzip"])
async def test_a_compressed_bomb_is_not_unpacked(coding: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(SinkUnknown, match="without a reference"):
            await outcome(answer(201, BOMB, Content_Encoding=coding))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 8_000_000


async def test_compression_is_understood_though_not_asked_for() -> None:
    body = gzip.compress(b'{"id": "Z-1"}')
    async with Web(answer(201, body, Content_Encoding="gzip")) as web, sink(web) as itsm:
        assert await itsm.create(PLAIN) == Receipt("Z-1")
    assert web.requests[0].headers["accept-encoding"] == "identity"


async def test_an_endless_body_is_not_read_to_its_end() -> None:
    sent = 0

    async def endless(_request: Request, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 422 X\r\nConnection: close\r\n\r\n")
        while True:
            writer.write(b"y" * 65_536)
            sent += 65_536
            await writer.drain()

    with pytest.raises(SinkRejected):
        await outcome(endless)
    assert sent < 50_000_000


async def test_each_ticket_has_a_connection_of_its_own() -> None:
    """A kept connection that the server closes just then would leave a ticket unknown for nothing."""

    async def once(request: Request, writer: asyncio.StreamWriter) -> None:
        writer.write(b'HTTP/1.1 201 X\r\nContent-Length: 9\r\n\r\n{"id": 1}')
        await writer.drain()

    async with Web(once) as web, sink(web) as itsm:
        for _ in range(5):
            assert await itsm.create(PLAIN) == Receipt("1")
            await asyncio.sleep(0.01)
    assert len(web.requests) == 5


async def test_a_ticket_that_is_no_json_is_rejected() -> None:
    odd = Ticket("k", "t", "b", Severity.ERROR, "a", "c", evidence={"x": float("nan")})
    async with Web(answer(201)) as web, sink(web) as itsm:
        with pytest.raises(SinkRejected, match="JSON"):
            await itsm.create(odd)
    assert web.requests == []
