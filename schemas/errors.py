"""Every exception andon raises on purpose.

    AndonError
    ├── RequestError           what was asked does not fit; whoever asked has to ask otherwise
    ├── ConfigError            the site file is wrong; carries every Issue found, each with its line
    ├── SecretError            a secret's file or credential cannot be read
    ├── EvalError              a file of labelled lines cannot be used; names file and line
    ├── StoreError             the store cannot be used
    │   ├── StoreUnavailable   disk full: nothing may be acknowledged; works again by itself
    │   ├── StoreFailed        I/O error: fatal, never retried
    │   ├── StoreCorrupt       integrity check failed: refuse to start, keep the file
    │   └── StoreLocked        another process owns the store
    ├── SourceError            a source cannot go on
    │   ├── SourceRefused      the broker refused us (credentials, protocol, client id taken over): fatal
    │   └── SourceLost         the connection is gone; it is tried again
    ├── ModelError             the model cannot be used
    │   ├── ModelMissing       no such file, truncated file, wrong architecture, too large for memory
    │   └── ModelOverflow      the prompt does not fit the context: never cut silently
    └── SinkError              a ticket was not (known to be) created
        ├── SinkBusy           retriable: 408, 409, 429, 5xx, no connection; carries retry_after_s
        ├── SinkMisconfigured  the sink refuses us, whatever the ticket: 401, 403, 404 ...; all are held
        ├── SinkRejected       the sink refuses this ticket: 400, 422 ...; carries the first 4 KB of the body
        └── SinkUnknown        the request may have created a ticket, but nothing that names it was seen

A bad record is a value, not an exception: exceptions are for failing machinery.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["error", "warning", "notice"]


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing wrong, or worth saying, in the site file. `line` and `column` count from 1."""

    path: str
    message: str
    line: int = 1
    column: int = 1
    file: str = "site.yaml"
    level: Level = "error"

    def __str__(self) -> str:
        level = "" if self.level == "error" else f"{self.level}: "
        return f"{self.file}:{self.line}:{self.column}: {self.path}: {level}{self.message}"


class AndonError(Exception):
    """Base of every error andon raises on purpose. The message tells the user what to do next."""


class RequestError(AndonError):
    """What was asked does not fit: there is no such name or number, or the value is not allowed."""


class ConfigError(AndonError):
    """The site file is wrong. `issues` holds everything found, in file order."""

    def __init__(self, issues: list[Issue]) -> None:
        self.issues = issues
        super().__init__("\n".join(str(issue) for issue in issues))


class SecretError(AndonError):
    """A secret named in the site file cannot be read."""


class EvalError(AndonError):
    """A file of labelled lines cannot be used; the message names the file and the line."""


class StoreError(AndonError):
    """The store cannot be used."""


class StoreUnavailable(StoreError):
    """The store cannot take writes now (disk full, another writer).

    Nothing of the failed transaction was stored, and nothing may be acknowledged; a later write may succeed.
    """


class StoreFailed(StoreError):
    """The disk returned an I/O error. Fatal: trying again may seem to succeed and lose data (fsync).

    `committed` tells what is known of the transaction in hand: False, nothing of it was stored; None, either
    all or nothing of it was (the journal tells after the restart).
    """

    def __init__(self, message: str, committed: bool | None = False) -> None:
        super().__init__(message)
        self.committed = committed


class StoreCorrupt(StoreError):
    """The database file fails its integrity check. It is kept as it is; the message says how to recover."""


class StoreLocked(StoreError):
    """Another process owns the store."""


class SourceError(AndonError):
    """A source cannot go on."""


class SourceRefused(SourceError):
    """The other side will not have us, and trying again will not help."""


class SourceLost(SourceError):
    """The connection is gone; the source tries again by itself."""


class ModelError(AndonError):
    """The model cannot be used."""


class ModelMissing(ModelError):
    """The model file is not there, or is not what it should be."""


class ModelOverflow(ModelError):
    """The prompt is longer than the model's context."""


class SinkError(AndonError):
    """A ticket was not created, or not known to be created."""

    retriable = False


class SinkBusy(SinkError):
    """Try again later; after `retry_after_s` seconds when the server said so.

    `may_exist` is set when the server may have created the ticket all the same (500, and 502 or 504 from a
    proxy): look it up first where the system can be searched.
    """

    retriable = True

    def __init__(self, message: str, retry_after_s: float | None = None, *, may_exist: bool = False) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.may_exist = may_exist


class SinkMisconfigured(SinkError):
    """The server refuses us, and would refuse any ticket: an expired token, a wrong url, a missing right.

    Somebody has to change something, there or in the site file; until then every ticket waits.
    """

    retriable = True


class SinkRejected(SinkError):
    """The server refused this ticket for good. `body` is the start of its answer (at most 4 KB)."""

    def __init__(self, message: str, body: str = "") -> None:
        super().__init__(message)
        self.body = body


class SinkUnknown(SinkError):
    """The request went out, and nothing that names a ticket came back: the ticket may exist.

    `answered` is set when an answer did come, and said yes: a page where a reference was expected. That is
    a fault of the configuration, or of what stands between us and the ticket system.
    """

    retriable = True

    def __init__(self, message: str, *, answered: bool = False) -> None:
        super().__init__(message)
        self.answered = answered
