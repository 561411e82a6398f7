"""What a status says of a ticket, Retry-After in both forms, JSON pointers, references."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.http_answer import Says, reference_at, resolve, retry_after_s, says

NOW = "Wed, 21 Oct 2026 07:28:00 GMT"


STATUSES = {
    Says.CREATED: range(200, 300),
    Says.ELSEWHERE: (302, 303),
    Says.BUSY: (408, 409, 423, 425, 429, 500, 502, 503, 504, 506, 507, 508, 510, 520, 599),
    Says.MISCONFIGURED: (
        *(300, 301, 304, 305, 307, 308),
        *(401, 402, 403, 404, 405, 406, 407, 410, 411, 414, 415, 421, 426, 431),
        *(501, 505, 511),
    ),
    Says.REFUSED: (400, 412, 413, 416, 417, 418, 422, 424, 428, 451, 499),
}


@pytest.mark.parametrize("meaning", STATUSES)
def test_what_a_status_says_of_a_ticket(meaning: Says) -> None:
    assert {status: says(status) for status in STATUSES[meaning]} == dict.fromkeys(STATUSES[meaning], meaning)


def test_every_status_says_something_and_only_2xx_says_created() -> None:
    assert [status for status in range(100, 600) if says(status) is Says.CREATED] == list(range(200, 300))


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("37", 37.0),
        ("0", 0.0),
        (" 5 ", 5.0),
        ("999999999999999999999", 86_400.0),
        ("Wed, 21 Oct 2026 07:28:37 GMT", 37.0),
        ("Wed, 21 Oct 2026 07:27:00 GMT", 0.0),
        ("Wed, 21 Oct 2036 07:28:00 GMT", 86_400.0),
        ("Wednesday, 21-Oct-26 07:28:37 GMT", 37.0),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("٣٧", None),
        ("", None),
        ("Wed, 99 Oct 2026 07:28:37 GMT", None),
    ],
)
def test_retry_after(value: str, seconds: float | None) -> None:
    headers = httpx.Headers({"retry-after": value.encode(), "date": NOW})  # type: ignore[dict-item]
    assert retry_after_s(headers) == seconds


def test_without_a_date_the_own_clock_has_to_do() -> None:
    headers = httpx.Headers({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"})
    assert retry_after_s(headers) == 0.0


@given(st.text())
def test_retry_after_never_fails(value: str) -> None:
    raw = value.encode("utf-8", "replace")
    seconds = retry_after_s(httpx.Headers([(b"retry-after", raw)]))
    assert seconds is None or 0 <= seconds <= 86_400


DOCUMENT = {
    "id": 7,
    "issue": {"key": "P-1", "a/b": "slash", "m~n": "tilde"},
    "hits": [{"id": "x"}],
    "": "empty",
}


@pytest.mark.parametrize(
    ("pointer", "value"),
    [
        ("", DOCUMENT),
        ("/id", 7),
        ("/issue/key", "P-1"),
        ("/issue/a~1b", "slash"),
        ("/issue/m~0n", "tilde"),
        ("/hits/0/id", "x"),
        ("/hits/1/id", None),
        ("/hits/-1", None),
        ("/hits/x", None),
        ("/hits/99999999999999999999", None),
        ("/", "empty"),
        ("/id/deeper", None),
        ("/nothing", None),
    ],
)
def test_pointers(pointer: str, value: Any) -> None:
    assert resolve(DOCUMENT, pointer) == value  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("value", "reference"),
    [("P-1", "P-1"), (7, "7"), (True, None), (None, None), ("", None), ([], None), ({}, None), (1.5, None)],
)
def test_references_are_text_or_whole_numbers(value: Any, reference: str | None) -> None:
    assert reference_at({"id": value}, "/id") == reference
