"""Logs: JSON, UTC, one line an event, no secrets, for structlog and for libraries alike."""

from __future__ import annotations

import io
import json
import logging
import sys
import warnings
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from pipeline.telemetry import configure_logging
from pipeline.telemetry.logs import REDACTED, VALUE_CHARS, Level
from schemas.errors import AndonError

# What a log call may be given: anything at all.
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.characters(categories=["Cs"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    structlog.reset_defaults()
    logging.captureWarnings(False)
    root.handlers[:], root.level = handlers, level


def logged(level: Level = "info") -> tuple[structlog.typing.FilteringBoundLogger, io.TextIOWrapper]:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    configure_logging(level, stream)
    return structlog.get_logger("andon.test"), stream


def lines(stream: io.TextIOWrapper) -> list[dict[str, Any]]:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return [json.loads(line) for line in buffer.getvalue().decode().splitlines()]


def test_an_event_is_one_json_object_with_time_level_and_logger() -> None:
    log, stream = logged()
    log.info("ticket.created", reference="T-7", elapsed_ms=12.5)
    (line,) = lines(stream)
    at = datetime.fromisoformat(line.pop("timestamp"))
    assert at.utcoffset() == UTC.utcoffset(None)
    assert line == {
        "event": "ticket.created",
        "level": "info",
        "logger": "andon.test",
        "reference": "T-7",
        "elapsed_ms": 12.5,
    }


def test_libraries_speak_the_same_form() -> None:
    _, stream = logged()
    logging.getLogger("some.library").warning("lost %s after %d s", "broker", 5, extra={"port": 1883})
    (line,) = lines(stream)
    assert line["event"] == "lost broker after 5 s"
    assert (line["level"], line["logger"], line["port"]) == ("warning", "some.library", 1883)


def test_warnings_become_log_lines() -> None:
    _, stream = logged()
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning("old", DeprecationWarning, "x.py", 1)
    assert "DeprecationWarning" in lines(stream)[0]["event"]


@pytest.mark.parametrize(
    ("level", "expected"),
    [
        ("debug", ["debug", "info", "warning", "error"]),
        ("info", ["info", "warning", "error"]),
        ("warning", ["warning", "error"]),
        ("error", ["error"]),
    ],
)
def test_the_level_filters_both_worlds(level: Level, expected: list[str]) -> None:
    log, stream = logged(level)
    library = logging.getLogger("some.library")
    for name in ("debug", "info", "warning", "error"):
        getattr(log, name)("ours")
        getattr(library, name)("theirs")
    assert [line["level"] for line in lines(stream)] == [name for name in expected for _ in range(2)]


@pytest.mark.parametrize("level", ["", "loud", "INFO", "critical"])
def test_a_level_that_is_none_is_refused_with_those_that_are(level: Any) -> None:
    with pytest.raises(AndonError, match="debug, info, warning, error"):
        configure_logging(level)


def test_a_second_call_reaches_loggers_in_use() -> None:
    log, first = logged("error")
    log.info("not written")
    second = io.TextIOWrapper(io.BytesIO())
    configure_logging("debug", second)
    log.debug("written")
    assert lines(first) == []
    assert [line["event"] for line in lines(second)] == ["written"]


def test_chatty_libraries_are_heard_from_warning_on() -> None:
    _, stream = logged("debug")
    logging.getLogger("httpx").info("HTTP Request: POST http://tickets/ ...")
    logging.getLogger("httpx").warning("trouble")
    assert [line["event"] for line in lines(stream)] == ["trouble"]


@pytest.mark.parametrize(
    "name",
    ["password", "mqtt_password", "Passwd", "secret", "client_secret", "token", "api_key", "APIKEY",
    "authorization",
     "credential", "credentials", "passphrase"],
)  # fmt: skip
def test_secrets_are_not_written_by_name(name: str) -> None:
    log, stream = logged()
    log.info("source.connecting", **{name: "s3cr3t"}, options={name: "s3cr3t", "inner": [{name: "s3cr3t"}]})
    (line,) = lines(stream)
    assert "s3cr3t" not in json.dumps(line)
    assert line[name] == REDACTED


@pytest.mark.parametrize("name", ["tokens", "key", "idempotency_key", "token_count", "secretary"])
def test_names_that_only_look_alike_are_written(name: str) -> None:
    log, stream = logged()
    log.info("x", **{name: "shown"})
    assert lines(stream)[0][name] == "shown"


def test_a_password_in_a_url_is_not_written() -> None:
    log, stream = logged()
    log.warning("sink.failed", error="cannot reach https://andon:s3cr3t@tickets.example/api")
    try:
        raise ConnectionError("mqtt://user:s3cr3t@broker:1883")
    except ConnectionError:
        log.exception("source.lost")
        logging.getLogger("some.library").exception("lost amqp://a:s3cr3t@b")
    first, second, third = lines(stream)
    assert "s3cr3t" not in json.dumps([first, second, third])
    assert first["error"] == f"cannot reach https://{REDACTED}@tickets.example/api"
    assert "ConnectionError" in second["exception"]
    assert "ConnectionError" in third["exception"]


def test_a_long_value_is_cut_and_says_so() -> None:
    log, stream = logged()
    log.info("line.received", line="x" * 1_000_000)
    assert lines(stream)[0]["line"] == "x" * VALUE_CHARS + "... (1000000 characters)"


@given(value=VALUES, name=st.text(min_size=1))
def test_whatever_is_logged_is_one_line_that_json_can_read(value: Any, name: str) -> None:
    log, stream = logged()
    log.info("x", value=value, mapping={name: value})
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    (line,) = buffer.getvalue().decode().rstrip("\n").split("\n")
    json.loads(line)


def test_stderr_is_the_default_and_stdout_stays_clean(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging()
    structlog.get_logger().info("hello", who="工厂")
    captured = capsys.readouterr()
    assert captured.out == ""
    assert json.loads(captured.err)["who"] == "工厂"
    assert sys.stderr.encoding.lower().replace("-", "") == "utf8"
