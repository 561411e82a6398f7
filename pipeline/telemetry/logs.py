"""Logs: one JSON object a line on stderr, from structlog and from every library that uses `logging`.

An event is a name and attributes, `log.info("ticket.created", reference=ref)`, never a sentence. Secrets are
kept out by the name of the attribute and by the shape of the value; both are a second line of defence, since
secrets are held by reference (`connectors.base.Secret`) and nobody has a reason to log one.
"""

from __future__ import annotations

import io
import logging
import re
import sys
from typing import Any, Literal, TextIO, get_args

import structlog
from structlog.typing import EventDict, Processor, WrappedLogger

from schemas.errors import AndonError

Level = Literal["debug", "info", "warning", "error"]

# Attributes whose value is never written. `tokens` (a count) and `key` (an idempotency key) are not secrets.
SECRET_NAME = re.compile(
    r"(?i)(?:password|passwd|passphrase|secret|token|authorization|api_?key|credentials?)$"
)
# user:password@ in a URL, wherever it stands in a value or in an exception's text. Bounded, so that no text
# is slow.
USERINFO = re.compile(r"(://)[^\s/@:]{0,200}:[^\s/@]{0,200}@")
REDACTED = "[redacted]"

# A 1 MB line belongs in the journal, not in the log: enough of it to recognise it.
VALUE_CHARS = 4096
# Deeper structures are written as their type's name: attributes are meant to be flat.
DEPTH = 4

# Libraries that tell at INFO what we tell ourselves, or print URLs and packets.
QUIET = ("alembic", "amqtt", "asyncio", "httpcore", "httpx", "paho", "transitions", "websockets")


def configure_logging(level: Level = "info", stream: TextIO | None = None) -> None:
    """Send every log event at or above `level` to `stream` (stderr) as JSON with UTC ISO 8601 times.

    Replaces what was configured before. A process that does not call this has structlog's default, which
    prints to stdout: every command of andon calls it first. Raises AndonError for a level that is none.
    """
    if level not in get_args(Level):
        raise AndonError(f"{level!r} is no log level: {', '.join(get_args(Level))}")
    number = logging.getLevelNamesMapping()[level.upper()]
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        redact,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,  # a second call must reach loggers that are in use already
    )
    handler = logging.StreamHandler(_total(stream or sys.stderr))
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[
                structlog.stdlib.ExtraAdder(),
                structlog.stdlib.PositionalArgumentsFormatter(),
                *shared,
            ],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(ensure_ascii=False, default=str),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(number)
    for name in QUIET:
        logging.getLogger(name).setLevel(max(number, logging.WARNING))
    logging.captureWarnings(True)


def redact(_logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    """A structlog processor: no secrets, nothing longer than VALUE_CHARS, nothing deeper than DEPTH.

    `_record` and `_from_structlog` are structlog's own and pass through.
    """
    return {
        name: value if name.startswith("_") else _clean(name, value, DEPTH) for name, value in event.items()
    }


def _clean(name: str, value: Any, depth: int) -> Any:
    if SECRET_NAME.search(name) and value is not None:
        return REDACTED
    if isinstance(value, bool | int | float | None):
        return value
    if depth and isinstance(value, dict):
        return {str(key): _clean(str(key), item, depth - 1) for key, item in value.items()}
    if depth and isinstance(value, list | tuple | set | frozenset):
        return [_clean(name, item, depth - 1) for item in value]
    if isinstance(value, dict | list | tuple | set | frozenset):
        return type(value).__name__
    return _text(value if isinstance(value, str) else str(value))


def _text(value: str) -> str:
    shown = USERINFO.sub(rf"\1{REDACTED}@", value[: 2 * VALUE_CHARS])
    if len(shown) <= VALUE_CHARS and len(value) <= 2 * VALUE_CHARS:
        return shown
    return f"{shown[:VALUE_CHARS]}... ({len(value)} characters)"


def _total(stream: TextIO) -> TextIO:
    """Make the stream take any string: UTF-8, and a lone surrogate as its JSON escape (which \\udc80 happens
    to be).
    """
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    return stream
