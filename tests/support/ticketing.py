"""Tickets, and an HttpSink towards a web server of the test."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from web import Handler, Web

from connectors.base import Receipt
from connectors.http import HttpSink, HttpSinkConfig
from schemas.extraction import Severity
from schemas.ticket import Ticket

TICKET = Ticket(
    key="abc/1 ü",
    title="press 7 hot",
    body="92 C",
    severity=Severity.ERROR,
    asset="press7",
    cause="F30002",
    fields={"temperature": "92"},
)
PLAIN = Ticket(key="abc1", title="t", body="b", severity=Severity.ERROR, asset="a", cause="c")


@asynccontextmanager
async def sink(web: Web, base: Path = Path(), **given: Any) -> AsyncIterator[HttpSink]:
    config = HttpSinkConfig.model_validate({"type": "http", "url": f"{web.url}/tickets", **given})
    built = config.build("itsm", base=base)
    try:
        yield built
    finally:
        await built.close()


async def outcome(handler: Handler, **given: Any) -> Receipt:
    async with Web(handler) as web, sink(web, **given) as itsm:
        return await itsm.create(PLAIN)
