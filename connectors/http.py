"""HTTP sink: one POST a ticket, JSON from a template that can only use ticket fields and fixed text.

One attempt a call; retries, back-off and the circuit breaker belong to deliver. What counts is whether a
ticket may exist now: as long as nothing of the request went out it cannot (SinkBusy); once it went out and no
status came back, nobody knows (SinkUnknown). A status that came back is the answer, whatever happens to the
body behind it. A yes without the reference that the site file promises is none: login pages say it, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import quote, urlsplit

import httpx
from pydantic import Field, JsonValue, field_validator, model_validator

from connectors.base import Check, Receipt, Secret, Strict
from connectors.http_answer import LOCATES, MAY_EXIST, Answer, Says, read_body, reference_at, resolve, says
from connectors.secrets import read_secret, tls_context
from connectors.template import check_template, render
from schemas.errors import SecretError, SinkBusy, SinkMisconfigured, SinkRejected, SinkUnknown
from schemas.ticket import Ticket

# Characters of a refusal that stand in its message: enough for "token expired".
SHOWN_CHARS = 200

# Keys of this form are never used: what is searched for when the search itself is to be tried.
_NO_KEY = "andon-check-no-such-key"


class HttpFind(Strict):
    """How to look a ticket up by its key. `{key}` in the url is replaced, percent-encoded.

    A hit is a 2xx whose `reference` pointer resolves; 404, or a JSON answer without it, means that there is
    none.
    """

    url: str = Field(description="address of the search; {key} in it is replaced by the ticket's key")
    reference: str = Field(default="/0/id", description="JSON pointer to the reference in the answer")
    match: str | None = Field(
        default=None,
        description="JSON pointer that must hold the key itself: for searches that also find similar",
    )


class HttpSinkConfig(Strict):
    type: Literal["http"] = Field(description="one POST a ticket to a ticket system's HTTP API")
    url: str = Field(description="address that creates a ticket, https:// or http://")
    headers: dict[str, str | Secret] = Field(
        default={}, description="a secret's file holds the header's whole value, as in: Token token=..."
    )
    body: dict[str, JsonValue] | None = Field(
        default=None,
        description="JSON template; strings may hold {title}, {body}, {severity}, {fields.NAME} ...",
    )
    reference: str | None = Field(
        default="/id",
        description="JSON pointer to the new ticket's reference in the answer; null when none is given",
    )
    idempotency_header: str | None = Field(
        default="Idempotency-Key", description="header that carries the key; null when the system has none"
    )
    idempotent: bool = Field(
        default=False,
        description="true only when the system is known to make one ticket a key: a lost answer is retried",
    )
    find: HttpFind | None = Field(
        default=None, description="how to look a ticket up by its key, after an answer was lost"
    )
    timeout_s: float = Field(default=15.0, gt=0, le=300, description="deadline over the whole call")
    ca: str | None = Field(
        default=None, description="PEM file of the certificate authority; default: the system's"
    )

    @field_validator("body")
    @classmethod
    def _template_is_sound(cls, body: dict[str, JsonValue] | None) -> dict[str, JsonValue] | None:
        if problems := check_template(body):
            raise ValueError("; ".join(problems))
        return body

    @model_validator(mode="after")
    def _idempotent_by_something(self) -> Self:
        if self.idempotent and self.idempotency_header is None and "{key}" not in json.dumps(self.body):
            raise ValueError("idempotent: true needs the key in idempotency_header, or as {key} in body")
        return self

    def build(
        self, name: str, *, record: Callable[[Ticket], Awaitable[str]] | None = None, base: Path = Path()
    ) -> HttpSink:
        """The sink called `name`;

        `base` is the site file's folder. Raises SecretError for an unreadable secret or ca.
        """
        return HttpSink(name, self, base=base)


class HttpSink:
    """A ticket system behind one URL. See connectors.base.Sink for what each method promises."""

    def __init__(
        self,
        name: str,
        config: HttpSinkConfig,
        *,
        base: Path = Path(),
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.name = name
        self.idempotent = config.idempotent
        self.searchable = config.find is not None
        self._config = config
        self._base = base
        self._headers, self._secrets = _headers(config, base)
        self._tls = tls_context(config.ca, base=base)
        self._client = httpx.AsyncClient(
            verify=self._tls,
            transport=transport,
            follow_redirects=False,  # a redirect would carry our headers to wherever the answer says
            trust_env=False,  # no proxy, certificate or .netrc password that nobody wrote into the site file
            timeout=None,  # the deadline is over the whole call
            # A kept connection may be closed just as the request goes out, and then nobody knows. Tickets are
            # rare.
            limits=httpx.Limits(max_keepalive_connections=0),
        )

    async def create(self, ticket: Ticket) -> Receipt:
        """One POST. Raises SinkBusy, SinkMisconfigured, SinkRejected or SinkUnknown."""
        headers = {"content-type": "application/json"}
        if self._config.idempotency_header is not None:
            headers[self._config.idempotency_header] = ticket.key
        call = _Call("POST", self._config.url, headers, self._content(ticket))
        answer = await self._send(call)
        self._raise_unless_created(call, answer)
        return Receipt(self._reference(call, answer))

    async def find(self, key: str) -> Receipt | None:
        """Look for a ticket under this key.

        None only when the system answered that it has none; else SinkBusy or SinkMisconfigured.
        """
        find = self._config.find
        if find is None:
            return None
        call = _Call("GET", find.url.replace("{key}", quote(key, safe="")), {})
        try:
            answer = await self._send(call)
        except SinkUnknown as error:
            raise SinkBusy(str(error)) from None  # a search changes nothing: it may simply be repeated
        if answer.status == 404:
            return None
        try:
            self._raise_unless_created(call, answer)
        except (SinkRejected, SinkUnknown) as error:  # no search that is refused says anything of the ticket
            raise SinkMisconfigured(f"{error}: correct find in the site file") from None
        document = self._found(call, answer)
        reference = reference_at(document, find.reference)
        if reference is None or (find.match is not None and resolve(document, find.match) != key):
            return None
        return Receipt(reference, existed=True)

    @staticmethod
    def _found(call: _Call, answer: Answer) -> JsonValue:
        """A search's answer. "Nothing found" must not be read out of a page that is none: a second ticket
        would follow."""
        try:
            return answer.document
        except ValueError as error:
            unknown = f"{call.where} answers {answer.status} ({answer.kind}): {error}"
            if not answer.complete:
                raise SinkBusy(f"{unknown}: whether the ticket exists is not known") from None
            raise SinkMisconfigured(f"{unknown}: a login page or a proxy? Correct find") from None

    async def check(self) -> Check:
        """Search for a key that does not exist, or else only connect. Creates nothing."""
        where = _where(self._config.url)
        try:
            if self.searchable:
                await self.find(_NO_KEY)
                return Check(True, f"{where}: the search answers")
            async with asyncio.timeout(self._config.timeout_s):
                await self._connect()
            return Check(True, f"{where}: can be reached (whether it takes tickets shows with the first one)")
        except (SinkBusy, SinkMisconfigured) as error:
            return Check(False, str(error))
        except (OSError, TimeoutError) as error:
            return Check(False, f"{where}: no connection: {error or 'no answer in time'}")

    async def close(self) -> None:
        await self._client.aclose()

    def _content(self, ticket: Ticket) -> bytes:
        document = _whole(ticket) if self._config.body is None else render(self._config.body, ticket)
        try:
            return json.dumps(document, allow_nan=False).encode()
        except (TypeError, ValueError) as error:
            raise SinkRejected(f"the ticket {ticket.key} cannot be written as JSON: {error}") from None

    async def _send(self, call: _Call) -> Answer:
        """One request within the deadline.

        Raises SinkBusy when nothing went out, SinkUnknown when no status came, SinkMisconfigured for a url
        or a secret that cannot be used.
        """
        await self._read_secrets()
        progress = _Progress()
        try:
            async with asyncio.timeout(self._config.timeout_s):
                async with self._client.stream(
                    call.method,
                    call.url,
                    headers={**self._headers, **call.headers},
                    content=call.content,
                    extensions={"trace": progress.trace},
                ) as response:
                    progress.answer = Answer(response.status_code, response.headers)
                    await read_body(response, progress.answer)
        except httpx.InvalidURL as error:
            raise SinkMisconfigured(f"{call.where}: {error}: correct url in the site file") from None
        except (TimeoutError, httpx.HTTPError) as error:
            if progress.answer is None:
                raise self._no_answer(call, error, sent=progress.sent) from None
        assert progress.answer is not None
        return progress.answer

    async def _read_secrets(self) -> None:
        """As they are now: a token that was renewed counts without a restart."""
        try:
            self._headers, self._secrets = await asyncio.to_thread(_headers, self._config, self._base)
        except SecretError as error:
            raise SinkMisconfigured(str(error)) from None

    def _no_answer(self, call: _Call, error: Exception, *, sent: bool) -> SinkBusy | SinkUnknown:
        late = f"no answer within {self._config.timeout_s:g} s"
        what = late if isinstance(error, TimeoutError) else self._redact(str(error) or type(error).__name__)
        if not sent:
            return SinkBusy(f"{call.where}: no connection: {what}")
        return SinkUnknown(f"{call.where}: the request went out, and no answer came back: {what}")

    def _raise_unless_created(self, call: _Call, answer: Answer) -> None:
        answered, meaning = f"{call.where} answers {answer.status}", says(answer.status)
        if meaning is Says.CREATED:
            return
        if meaning is Says.BUSY:
            raise SinkBusy(answered, answer.retry_after_s, may_exist=answer.status in MAY_EXIST)
        if meaning is Says.REFUSED:
            raise SinkRejected(answered, self._redact(answer.excerpt))
        if 300 <= answer.status < 400:
            target = _where(answer.headers.get("location", ""))
            answered += f": a redirect to {target}, which is not followed; set url to it if it is right"
        else:
            body = " ".join(self._redact(answer.excerpt).split())[:SHOWN_CHARS]
            answered += f"{f' ({body})' if body else ''}: correct url, headers or the rights behind them"
        if meaning is Says.ELSEWHERE:
            raise SinkUnknown(answered, answered=True)
        raise SinkMisconfigured(answered)

    def _reference(self, call: _Call, answer: Answer) -> str:
        """The new ticket's reference: where the site file says, else its Location.

        Raises SinkUnknown when there is neither, unless the site file says that the system gives none.
        """
        pointer, location = self._config.reference, ""
        if answer.status in LOCATES:
            location = str(answer.headers.get("location", ""))
        if pointer is None:
            return location
        try:
            reference = reference_at(answer.document, pointer)
        except ValueError:
            reference = None
        if not (reference or location):
            raise SinkUnknown(
                f"{call.where} answers {answer.status} ({answer.kind}) without a reference at {pointer}: "
                "a login page or a proxy? Correct url, or reference (null when the system gives none)",
                answered=True,
            )
        return reference or location

    def _redact(self, text: str) -> str:
        """Servers like to repeat what they were sent."""
        for secret in self._secrets:
            text = text.replace(secret, "***")
        return text

    async def _connect(self) -> None:
        parts = urlsplit(self._config.url)
        secure = parts.scheme == "https"
        port = parts.port or (443 if secure else 80)
        _, writer = await asyncio.open_connection(parts.hostname, port, ssl=self._tls if secure else None)
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


class _Call:
    """One request, and how it is called in messages."""

    def __init__(self, method: str, url: str, headers: dict[str, str], content: bytes | None = None) -> None:
        self.method = method
        self.url = url
        self.headers = {"accept": "application/json", "accept-encoding": "identity", **headers}
        self.content = content
        self.where = f"{method} {_where(url)}"


class _Progress:
    """How far a request has come."""

    def __init__(self) -> None:
        self.sent = False
        self.answer: Answer | None = None

    async def trace(self, event: str, _info: dict[str, Any]) -> None:
        """httpcore's trace extension: called at each step of a request."""
        if event.endswith("send_request_headers.started"):
            self.sent = True


def _headers(config: HttpSinkConfig, base: Path) -> tuple[dict[str, str], list[str]]:
    """The configured headers, and which of their values (and words of them) must never be shown."""
    headers, secrets = {}, []
    for name, given in config.headers.items():
        if isinstance(given, Secret):
            value = read_secret(given, base)
            if not value.isascii() or not value.isprintable():
                raise SecretError(f"the secret for the header {name} is not one line of plain ASCII text")
            # "Bearer abc" may come back as "abc". Longest first, so that no part is left over.
            secrets += [value, *(word for word in value.replace("=", " ").split() if len(word) >= 8)]
        else:
            value = given
        headers[name] = value
    return headers, sorted(secrets, key=len, reverse=True)


def _whole(ticket: Ticket) -> JsonValue:
    """The body when the site file gives none: the whole ticket."""
    document: dict[str, JsonValue] = asdict(ticket)
    return {**document, "severity": str(ticket.severity)}


def _where(url: str) -> str:
    """A URL for people: without user, password, query and fragment, any of which may be secret."""
    try:
        parts = urlsplit(url)
        port = "" if parts.port is None else f":{parts.port}"
    except ValueError:
        return "an address that is no URL"
    host = parts.hostname or ""
    return f"{parts.scheme}://{host}{port}{parts.path}" if host else parts.path or "nowhere"
