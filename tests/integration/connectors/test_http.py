"""HttpSink against a real HTTP server: what goes out, every status, and looking a ticket up."""

from __future__ import annotations

import asyncio
import json
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from certificates import Certificates
from ports import free_port
from ticketing import PLAIN, TICKET, outcome, sink
from web import Handler, Request, Web, answer

from connectors.base import Receipt
from connectors.http import HttpSinkConfig
from schemas.errors import SecretError, SinkBusy, SinkMisconfigured, SinkRejected, SinkUnknown

# What goes out.


async def test_the_whole_ticket_goes_out_under_its_key() -> None:
    async with Web(answer(201, b'{"id": 17}')) as web, sink(web) as itsm:
        assert await itsm.create(PLAIN) == Receipt("17")
    (request,) = web.requests
    assert (request.method, request.target) == ("POST", "/tickets")
    assert request.headers["idempotency-key"] == "abc1"
    assert request.headers["content-type"] == "application/json"
    assert request.document["severity"] == "error"
    assert request.document["occurrences"] == 1
    assert set(request.document) >= {"key", "title", "body", "asset", "cause", "fields", "evidence"}


async def test_a_template_and_a_nested_reference() -> None:
    body = {"issue": {"subject": "{title}", "n": "{occurrences}", "t": "{fields.temperature}"}, "fixed": 7}
    async with Web(answer(200, b'{"issue": {"id": "P-9"}}')) as web:
        async with sink(web, body=body, reference="/issue/id", idempotency_header="X-Key") as itsm:
            assert (await itsm.create(PLAIN)).reference == "P-9"
    (request,) = web.requests
    assert request.document == {"issue": {"subject": "t", "n": 1, "t": None}, "fixed": 7}
    assert request.headers["x-key"] == "abc1"
    assert "idempotency-key" not in request.headers


async def test_secret_headers_are_sent_and_never_shown(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("Token token=s3cret-token-value\n")

    async def echo(request: Request, writer: asyncio.StreamWriter) -> None:
        value = request.headers["authorization"]
        await answer(422, f"bad: {value} / {value.split('=')[1]}".encode())(request, writer)

    headers = {"Authorization": {"file": "token"}, "X-Plant": "hall 2"}
    async with Web(echo) as web, sink(web, tmp_path, headers=headers) as itsm:
        with pytest.raises(SinkRejected) as caught:
            await itsm.create(PLAIN)
    assert web.requests[0].headers["authorization"] == "Token token=s3cret-token-value"
    assert web.requests[0].headers["x-plant"] == "hall 2"
    shown = f"{caught.value} {caught.value.body} {caught.value.__cause__} {caught.value.__context__} {itsm!r}"
    assert "s3cret" not in shown
    assert "bad: ***" in caught.value.body


@pytest.mark.parametrize("secret", ["two\nlines", "ümlaut", "nul\0"])
def test_a_secret_that_is_no_header_is_refused_without_saying_it(tmp_path: Path, secret: str) -> None:
    (tmp_path / "token").write_text(secret)
    config = HttpSinkConfig(type="http", url="http://h/", headers={"X-Key": {"file": "token"}})  # type: ignore[dict-item]
    with pytest.raises(SecretError) as caught:
        config.build("itsm", base=tmp_path)
    assert secret not in str(caught.value)


async def test_no_proxy_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    assert await outcome(answer(201, b'{"id": 1}')) == Receipt("1")


# Every status.


@pytest.mark.parametrize("status", [200, 201, 202, 207])
async def test_success(status: int) -> None:
    assert await outcome(answer(status, b'{"id": "A-1"}')) == Receipt("A-1")


HTML = b"<!doctype html><title>Sign in</title>"


@pytest.mark.parametrize("status", [200, 201, 202, 203, 204])
@pytest.mark.parametrize(
    "body", [b"", b"OK", HTML, b"[]", b'{"id": null}', b'{"id": {"x": 1}}', b"\xff", b"[" * 5000]
)
async def test_a_yes_without_the_promised_reference_is_unknown(status: int, body: bytes) -> None:
    """A login page says 200, too. Taken for a ticket it would be a ticket that nobody ever sees."""
    body = b"" if status == 204 else body
    with pytest.raises(SinkUnknown, match="without a reference at /id") as caught:
        await outcome(answer(status, body, Content_Type="text/html; charset=utf-8"))
    assert caught.value.answered
    assert f"{status} (text/html)" in str(caught.value) and "reference" in str(caught.value)
    assert await outcome(answer(status, body), reference=None) == Receipt(""), "where none is promised"


@pytest.mark.parametrize(("status", "counts"), [(201, True), (202, True), (200, False), (204, False)])
async def test_a_location_is_a_reference_where_it_names_what_was_made(status: int, counts: bool) -> None:
    there = answer(status, b"", Location="/tickets/9")
    if counts:
        assert await outcome(there) == await outcome(there, reference=None) == Receipt("/tickets/9")
    else:
        with pytest.raises(SinkUnknown):
            await outcome(there)


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504, 507, 599])
async def test_busy(status: int) -> None:
    with pytest.raises(SinkBusy) as caught:
        await outcome(answer(status, b"later"))
    assert caught.value.retry_after_s is None
    assert caught.value.retriable
    assert caught.value.may_exist == (status in {409, 500, 502, 504})


@pytest.mark.parametrize("status", [400, 413, 422, 451])
async def test_rejected_with_the_start_of_its_reason(status: int) -> None:
    with pytest.raises(SinkRejected) as caught:
        await outcome(answer(status, b"because " + b"x" * 10_000))
    assert not caught.value.retriable
    assert caught.value.body.startswith("because xxx")
    assert len(caught.value.body) == 4096
    assert str(status) in str(caught.value)


@pytest.mark.parametrize("status", [401, 403, 404, 405, 407, 410, 415, 501, 511])
async def test_a_server_that_refuses_us_refuses_no_ticket(status: int) -> None:
    with pytest.raises(SinkMisconfigured, match=rf"answers {status} \(token\s+expired xxx") as caught:
        await outcome(answer(status, b"token  expired\n" + b"x" * 10_000))
    assert caught.value.retriable
    assert "correct url, headers" in str(caught.value) and len(str(caught.value)) < 400


async def test_a_renewed_secret_counts_without_a_restart(tmp_path: Path) -> None:
    async def guarded(request: Request, writer: asyncio.StreamWriter) -> None:
        known = request.headers["authorization"] == "Token new-token-1"
        await answer(201 if known else 401, b'{"id": 5}')(request, writer)

    (tmp_path / "token").write_text("Token old-token-1")
    async with Web(guarded) as web:
        async with sink(web, tmp_path, headers={"Authorization": {"file": "token"}}) as itsm:
            with pytest.raises(SinkMisconfigured):
                await itsm.create(PLAIN)
            (tmp_path / "token").unlink()
            with pytest.raises(SinkMisconfigured, match="token does not exist"):
                await itsm.create(PLAIN)
            (tmp_path / "token").write_text("Token new-token-1")
            assert await itsm.create(PLAIN) == Receipt("5")
    assert len(web.requests) == 2, "without its secret nothing goes out"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "37"}, 37.0),
        ({"Retry-After": "Wed, 21 Oct 2026 07:28:37 GMT", "Date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 37.0),
        ({"Retry-After": "whenever"}, None),
    ],
)
@pytest.mark.parametrize("status", [429, 503])
async def test_retry_after(status: int, headers: dict[str, str], seconds: float | None) -> None:
    with pytest.raises(SinkBusy) as caught:
        await outcome(answer(status, **headers))
    assert caught.value.retry_after_s == seconds


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_refused_and_named(status: int, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("s3cret-token")
    async with Web(answer(201)) as elsewhere:
        target = f"{elsewhere.url}/steal?token=abc"
        async with Web(answer(status, Location=target)) as web:
            async with sink(web, tmp_path, headers={"X-Token": {"file": "token"}}) as itsm:
                expected = SinkUnknown if status in (302, 303) else SinkMisconfigured
                with pytest.raises(expected, match=r"redirect to http://127\.0\.0\.1:") as caught:
                    await itsm.create(PLAIN)
    assert elsewhere.requests == []
    assert "abc" not in str(caught.value)


# TLS.


async def test_tls_with_the_plants_own_authority(certificates: Certificates) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificates.path("server.crt"), certificates.path("server.key"))
    async with Web(answer(201, b'{"id": 1}'), context) as web:
        async with sink(web, ca=certificates.ca) as itsm:
            assert await itsm.create(PLAIN) == Receipt("1")
            assert (await itsm.check()).ok
        async with sink(web, ca=certificates.path("other-ca.crt")) as itsm:
            with pytest.raises(SinkBusy, match="certificate"):
                await itsm.create(PLAIN)
            assert not (await itsm.check()).ok
    assert len(web.requests) == 1


# find


def board(tickets: dict[str, str], status: int = 200) -> Handler:
    """A ticket system that is searched by ?key=."""

    async def handle(request: Request, writer: asyncio.StreamWriter) -> None:
        key = parse_qs(urlsplit(request.target).query)["key"][0]
        hits = [{"id": tickets[key], "external": key}] if key in tickets else []
        await answer(status, json.dumps({"issues": hits}).encode())(request, writer)

    return handle


def by_key(web: Web, **given: Any) -> dict[str, Any]:
    return {"url": f"{web.url}/search?key={{key}}", "reference": "/issues/0/id", **given}


async def test_find() -> None:
    async with Web(board({TICKET.key: "P-7"})) as web, sink(web, find=by_key(web)) as itsm:
        assert itsm.searchable
        assert await itsm.find(TICKET.key) == Receipt("P-7", existed=True)
        assert await itsm.find("other") is None
        assert (await itsm.check()).ok
    assert all(request.method == "GET" for request in web.requests)
    assert "abc%2F1%20%C3%BC" in web.requests[0].target


async def test_find_can_insist_on_the_key() -> None:
    """A search that also finds similar tickets must not swallow a new one."""

    async def fuzzy(request: Request, writer: asyncio.StreamWriter) -> None:
        await answer(200, b'{"issues": [{"id": 1, "external": "another"}]}')(request, writer)

    async with Web(fuzzy) as web:
        async with sink(web, find=by_key(web)) as itsm:
            assert await itsm.find("abc1") == Receipt("1", existed=True)
        async with sink(web, find=by_key(web, match="/issues/0/external")) as itsm:
            assert await itsm.find("abc1") is None
            assert await itsm.find("another") == Receipt("1", existed=True)


async def test_find_with_404_is_none() -> None:
    async with Web(answer(404)) as web, sink(web, find=by_key(web)) as itsm:
        assert await itsm.find("abc1") is None


@pytest.mark.parametrize(
    "handler",
    [
        pytest.param(answer(200, b"<html>please log in</html>"), id="a login page"),
        pytest.param(answer(200, b""), id="nothing"),
        pytest.param(answer(200, b'{"issues": ["' + b"x" * 70_000 + b'"]}'), id="too long"),
        pytest.param(answer(503), id="busy"),
        pytest.param(answer(429, Retry_After="5"), id="too often"),
    ],
)
async def test_find_never_takes_a_failure_for_none(handler: Handler) -> None:
    async with Web(handler) as web, sink(web, find=by_key(web)) as itsm:
        with pytest.raises((SinkBusy, SinkMisconfigured)):
            await itsm.find("abc1")
        assert not (await itsm.check()).ok


async def test_find_that_gets_no_answer_is_busy() -> None:
    async def hang_up(_request: Request, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async with Web(hang_up) as web, sink(web, find=by_key(web)) as itsm:
        with pytest.raises(SinkBusy):
            await itsm.find("abc1")


@pytest.mark.parametrize("status", [400, 401, 403, 405, 410, 422, 301, 302])
async def test_find_that_is_not_allowed_is_a_fault_of_the_site_file(status: int) -> None:
    """Whatever is wrong with the search: the ticket is not refused by it."""
    async with Web(answer(status)) as web, sink(web, find=by_key(web)) as itsm:
        with pytest.raises(SinkMisconfigured, match=rf"GET http://.*/search answers {status}"):
            await itsm.find("abc1")
        assert not (await itsm.check()).ok


async def test_without_find_nothing_is_searched() -> None:
    async with Web(answer(200)) as web, sink(web) as itsm:
        assert not itsm.searchable
        assert await itsm.find("abc1") is None
        assert (await itsm.check()).ok
    assert web.requests == [], "a check creates nothing"


# The site file.


@pytest.mark.parametrize(
    ("given", "idempotent"),
    [
        ({}, False),
        ({"idempotent": True}, True),
        ({"idempotent": True, "idempotency_header": None, "body": {"dedup_key": "{key}"}}, True),
    ],
)
def test_idempotent_is_what_the_site_file_says(given: dict[str, Any], idempotent: bool) -> None:
    """Sending a header proves nothing about what the server does with it."""
    config = HttpSinkConfig.model_validate({"type": "http", "url": "http://h/", **given})
    assert config.build("itsm").idempotent is idempotent


def test_idempotent_by_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="idempotency_header"):
        HttpSinkConfig(type="http", url="http://h/", idempotent=True, idempotency_header=None)
