"""What an HTTP server answers, made harmless and told apart: bounded bodies, Retry-After, JSON pointers."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum

import httpx
from pydantic import JsonValue

# Of an answer's body we need a reference. A ticket system that says more than this is not listened to any
# longer.
BODY_BYTES = 64 * 1024

# What is kept of a refusal, for the person who has to understand it.
EXCERPT_BYTES = 4 * 1024

# A server that asks for more patience than a day is asked again after a day.
RETRY_AFTER_MAX_S = 86_400.0


class Says(StrEnum):
    """What a status says about the ticket that was to be created."""

    CREATED = "created"
    BUSY = "busy"  # not now: the same request may be granted later
    REFUSED = "refused"  # this ticket is refused, another one may not be
    MISCONFIGURED = "misconfigured"  # every request is refused, until somebody changes something
    ELSEWHERE = "elsewhere"  # done or not: the answer is on another page, often that of a login


# The server was not ready for us, or not yet. 409: a request under this key is still being worked on.
_BUSY = frozenset({408, 409, 423, 425, 429})

# Who we are (401, 402, 403, 407, 511), where we ask and how (404, 405, 406, 410, 411, 414, 415, 421, 426,
# 431, 501, 505): nothing that another ticket could do better.
_MISCONFIGURED = frozenset(
    {401, 402, 403, 404, 405, 406, 407, 410, 411, 414, 415, 421, 426, 431, 501, 505, 511}
)

# Redirects after which the POST may have been done: "see other" is how many servers answer one.
_ELSEWHERE = frozenset({302, 303})

# Answers after which a ticket may exist all the same: it does already (409), the server failed while it
# worked on it, or a proxy before it did not hear the end.
MAY_EXIST = frozenset({409, 500, 502, 504})

# Statuses whose Location names what was created (RFC 9110, 15.3.2 and 15.3.3).
LOCATES = frozenset({201, 202})


def says(status: int) -> Says:
    """What any status says about a ticket (RFC 9110, 15)."""
    if 200 <= status < 300:
        return Says.CREATED
    if status in _MISCONFIGURED:
        return Says.MISCONFIGURED
    if status in _ELSEWHERE:
        return Says.ELSEWHERE
    if status in _BUSY or status >= 500:
        return Says.BUSY
    return Says.MISCONFIGURED if status < 400 else Says.REFUSED


@dataclass(slots=True)
class Answer:
    """A response's status and headers, with as much of its body as came in time.

    Decoded, at most BODY_BYTES.
    """

    status: int
    headers: httpx.Headers
    body: bytearray = field(default_factory=bytearray)
    complete: bool = False

    @property
    def document(self) -> JsonValue:
        """The body as JSON. Raises ValueError when it is none, or did not come whole."""
        if not self.complete:
            raise ValueError("the answer did not come whole")
        try:
            document: JsonValue = json.loads(self.body)
        except RecursionError:
            raise ValueError("the answer is nested too deeply") from None
        return document

    @property
    def excerpt(self) -> str:
        return bytes(self.body[:EXCERPT_BYTES]).decode("utf-8", "replace")

    @property
    def kind(self) -> str:
        """The body's media type, for people."""
        return str(self.headers.get("content-type", "")).partition(";")[0].strip() or "no content type"

    @property
    def retry_after_s(self) -> float | None:
        return retry_after_s(self.headers)


async def read_body(response: httpx.Response, answer: Answer) -> None:
    """Read the body into `answer`, at most BODY_BYTES of it once unpacked. What came before an error stays
    there.

    httpx would unpack a whole network read at once: 64 KB of gzip can hold 64 MB.
    """
    coding = response.headers.get("content-encoding", "identity").strip().lower()
    if coding in ("", "identity"):
        unpack = None
    elif coding in ("gzip", "x-gzip", "deflate"):
        unpack = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)  # 32: gzip or zlib, whichever it is
    else:
        return  # we asked for no coding at all; the status says enough
    async for chunk in response.aiter_raw():
        room = BODY_BYTES + 1 - len(answer.body)
        try:
            answer.body += chunk[:room] if unpack is None else unpack.decompress(chunk, room)
        except zlib.error:
            return
        if len(answer.body) > BODY_BYTES:
            del answer.body[BODY_BYTES:]
            return
    answer.complete = unpack is None or unpack.eof


def retry_after_s(headers: httpx.Headers) -> float | None:
    """Retry-After in seconds (RFC 9110, 10.2.3), given as seconds or as a date; None when absent or
    unreadable.

    A date is taken relative to the server's own Date: a gateway's clock may be years off.
    """
    value = headers.get("retry-after", "").strip()
    if value.isascii() and value.isdigit():
        # Thousands of digits would not fit an int.
        return RETRY_AFTER_MAX_S if len(value) > 9 else min(float(value), RETRY_AFTER_MAX_S)
    until = _http_date(value)
    if until is None:
        return None
    now = _http_date(headers.get("date", "")) or datetime.now(UTC)
    return min(max(0.0, (until - now).total_seconds()), RETRY_AFTER_MAX_S)


def _http_date(value: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment


def resolve(document: JsonValue, pointer: str) -> JsonValue:
    """The value at a JSON pointer (RFC 6901), None where there is none."""
    value = document
    for token in pointer.split("/")[1:]:
        name = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, Mapping):
            value = value.get(name)
        elif isinstance(value, list) and name.isascii() and name.isdigit() and len(name) < 9:
            value = value[int(name)] if int(name) < len(value) else None
        else:
            return None
    return value


def reference_at(document: JsonValue, pointer: str) -> str | None:
    """The text or whole number at the pointer, as text; None when there is no such thing."""
    value = resolve(document, pointer)
    if isinstance(value, bool) or not isinstance(value, str | int):
        return None
    return str(value) or None
