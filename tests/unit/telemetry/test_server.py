"""The loopback server, spoken to over real sockets: answers, refusals, and that nothing is unbounded."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import httpx
import pytest

from pipeline.telemetry import Health, Metrics, TelemetryServer
from pipeline.telemetry import server as server_module
from pipeline.telemetry.server import CONNECTIONS, REQUEST_BYTES


class Service:
    """A service whose health the test sets."""

    def __init__(self) -> None:
        self.metrics = Metrics()
        self.health = Health(live=True, ready=True, detail={"model": "loading"})
        self.server = TelemetryServer(self.metrics, lambda: self.health, port=0)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"


@pytest.fixture
async def service() -> AsyncIterator[Service]:
    service = Service()
    await service.server.start()
    yield service
    await service.server.close()


@pytest.fixture
async def client() -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(trust_env=False) as client:
        yield client


async def spoken(service: Service, data: bytes, close: bool = False) -> bytes:
    """Send raw bytes and return everything that came back until the server closed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", service.server.port)
    writer.write(data)
    if close:
        writer.write_eof()
    answer = b""
    # A server that closes with our bytes unread resets the connection: that too is the end of the answer.
    with contextlib.suppress(ConnectionError):
        while chunk := await reader.read(65_536):
            answer += chunk
    writer.close()
    return answer


async def test_metrics_are_served_in_the_text_format(service: Service, client: httpx.AsyncClient) -> None:
    service.metrics.commits.inc(3)
    answer = await client.get(f"{service.url}/metrics?ignored=1")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert "andon_journal_commits_total 3.0" in answer.text


async def test_ready_does_not_wait_for_the_model(service: Service, client: httpx.AsyncClient) -> None:
    answer = await client.get(f"{service.url}/healthz")
    assert (answer.status_code, answer.json()) == (200, {"live": True, "ready": True, "model": "loading"})


@pytest.mark.parametrize(("live", "ready"), [(True, False), (False, True), (False, False)])
async def test_not_live_or_not_ready_is_503(
    service: Service, client: httpx.AsyncClient, live: bool, ready: bool
) -> None:
    service.health = Health(live=live, ready=ready, detail={"reason": "disk full"})
    answer = await client.get(f"{service.url}/healthz")
    assert (answer.status_code, answer.json()) == (503, {"live": live, "ready": ready, "reason": "disk full"})


async def test_head_has_the_headers_and_no_body(service: Service, client: httpx.AsyncClient) -> None:
    answer = await client.head(f"{service.url}/healthz")
    assert (answer.status_code, answer.content) == (200, b"")
    assert int(answer.headers["content-length"]) > 0


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", 404, id="no such page"),
        pytest.param(b"GET /metrics/../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n", 404, id="traversal"),
        pytest.param(b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc", 405, id="POST"),
        pytest.param(b"DELETE /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 405, id="DELETE"),
        pytest.param(b"GET /healthz HTTP/1.1\r\n\r\n", 400, id="HTTP/1.1 asks for a Host"),
        pytest.param(b"GET /healthz HTTP/1.0\r\n\r\n", 200, id="HTTP/1.0"),
        pytest.param(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, id="a TLS hello"),
        pytest.param(b"hello\r\n\r\n", 400, id="no HTTP"),
        pytest.param(
            b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + b"a" * (2 * REQUEST_BYTES), 431, id="long header"
        ),
        pytest.param(b"GET /" + b"a" * (2 * REQUEST_BYTES), 431, id="long path"),
    ],
)
async def test_what_is_no_good_request_gets_its_status(
    service: Service, request_bytes: bytes, status: int
) -> None:
    answer = await spoken(service, request_bytes, close=True)
    assert answer.split(b" ", 2)[1] == str(status).encode(), answer[:200]


async def test_connecting_and_leaving_is_no_error(service: Service, client: httpx.AsyncClient) -> None:
    assert await spoken(service, b"", close=True) == b""
    assert (await client.get(f"{service.url}/healthz")).status_code == 200


async def test_a_client_that_says_nothing_is_cut_off(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "CONNECTION_S", 0.05)
    assert await spoken(service, b"GET /metr") == b""


async def test_connections_are_bounded_and_come_back(service: Service, client: httpx.AsyncClient) -> None:
    held = [await asyncio.open_connection("127.0.0.1", service.server.port) for _ in range(CONNECTIONS)]
    refused = await spoken(service, b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    assert refused.startswith(b"HTTP/1.1 503 ")
    for _, writer in held:
        writer.close()
        await writer.wait_closed()
    for _ in range(1000):
        if (await client.get(f"{service.url}/healthz")).status_code == 200:
            return
        await asyncio.sleep(0.01)
    pytest.fail("the held connections were closed and still count")


async def test_a_health_detail_that_is_no_json_is_shown_as_text(
    service: Service, client: httpx.AsyncClient
) -> None:
    service.health = Health(True, True, {"model": ValueError("gone")})
    assert json.loads((await client.get(f"{service.url}/healthz")).text)["model"] == "gone"


async def test_a_taken_port_is_an_error_at_start(service: Service) -> None:
    other = TelemetryServer(service.metrics, lambda: service.health, port=service.server.port)
    with pytest.raises(OSError):
        await other.start()
    await other.close()
