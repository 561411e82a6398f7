"""File and stdin sources: lines of a file (followed, rotation noticed) or of standard input.

One delivery is a chunk of whole lines (see lines.py); its `position` is the offset behind it, and the
source's `position` names the file as well. Nothing is acknowledged to a file: whoever reads it persists
`position` together with the batch. A last line without a line break waits for the rest of it, unless the file
has ended for good.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, JsonValue

from connectors.base import (
    Check,
    Delivery,
    Framing,
    Notice,
    NoticeKind,
    Notices,
    SourceOptions,
    SourceStats,
    log_notice,
)
from connectors.file_tail import FilePosition, Tail, open_at, successor
from connectors.lines import LineCutter, newline_of
from connectors.stdin import StdinSource
from schemas.errors import SourceError, SourceRefused

# How often a file at its end is looked at. A person does not notice a quarter of a second; a gateway's
# processor would notice much less. (inotify tells nothing on network file systems, where machines like to put
# their logs.)
POLL_S = 0.25

# Bytes read at once, and so the most that one batch holds.
READ_BYTES = 1024 * 1024

# A renamed file is still written to until its writer notices. It has ended when it was quiet for this long.
ROTATE_GRACE_S = 2.0


class FileConfig(SourceOptions):
    type: Literal["file"] = Field(description="lines of a file")
    path: str = Field(min_length=1, description="the file; relative to the site file")
    follow: bool = Field(
        default=True, description="keep reading as the file grows; false: end at end of file"
    )
    start: Literal["beginning", "end"] = Field(
        default="beginning", description="where a file never seen before starts"
    )
    framing: Framing = Field(
        default="lines", description="what an event is: a line, or lines joined into records"
    )

    def build(
        self,
        name: str,
        *,
        position: Mapping[str, JsonValue] | None = None,
        notices: Notices = log_notice,
        base: Path = Path(),
    ) -> FileSource:
        """The source called `name`. `position` is what it said last time, `base` the site file's folder."""
        return FileSource(name, self, base / self.path, position=position, notices=notices)


class StdinConfig(SourceOptions):
    type: Literal["stdin"] = Field(description="lines of standard input")
    framing: Framing = Field(
        default="lines", description="what an event is: a line, or lines joined into records"
    )

    def build(
        self,
        name: str,
        *,
        position: Mapping[str, JsonValue] | None = None,
        notices: Notices = log_notice,
        base: Path = Path(),
    ) -> StdinSource:
        """The source called `name`. A stream has no position to go on from, and no files."""
        return StdinSource(name, encoding=self.encoding, notices=notices)


class FileSource:
    """A log file as a source. See connectors.base.Source for what each method promises.

    `batches()` waits for a file that does not exist yet, unless it is not followed. A batch never spans two
    files. Raises SourceRefused when the file cannot be read, and SourceError when it is missing and not
    waited for.
    """

    def __init__(
        self,
        name: str,
        config: FileConfig,
        path: Path,
        *,
        position: Mapping[str, JsonValue] | None = None,
        notices: Notices = log_notice,
        grace_s: float = ROTATE_GRACE_S,
    ) -> None:
        self.name = name
        self._config = config
        self._path = path
        self._notices = notices
        self._grace_s = grace_s
        self._position = self._reached = FilePosition.from_json(position or {})
        self._missed = False  # the file was not there when we looked: whatever comes is new
        self._tail: Tail | None = None
        self._lock = threading.Lock()
        self._said: list[Notice] = []
        self._cutter: LineCutter | None = None
        self._offset = 0
        self._quiet_since: float | None = None
        self._paused = asyncio.Event()
        self._ended = False
        self._received = 0
        self._acked = 0
        self._connects = 0
        self._last_error: str | None = None

    async def batches(self) -> AsyncIterator[Sequence[Delivery]]:
        self._ended = False
        try:
            while not (self._paused.is_set() or self._ended):
                batch = await asyncio.to_thread(self._step)
                self._flush_notices()
                if batch:
                    self._position = self._reached
                    yield batch
                elif not self._ended:
                    await self._rest()
        finally:
            self._flush_notices()
            await self.close()

    async def ack(self, deliveries: Sequence[Delivery]) -> None:
        """Counts only: a file is told nothing."""
        self._acked += len(deliveries)

    async def pause(self) -> None:
        self._paused.set()

    async def close(self) -> None:
        """Close the file; nothing is lost by it. `batches()` opens it again where it was."""
        await asyncio.to_thread(self._let_go)

    async def check(self) -> Check:
        return await asyncio.to_thread(self._check)

    @property
    def position(self) -> Mapping[str, JsonValue]:
        """Everything before it has been yielded. Empty while the file was not found yet."""
        return {} if self._position is None else self._position.to_json()

    def stats(self) -> SourceStats:
        return SourceStats(
            connected=self._tail is not None,
            connects=self._connects,
            received=self._received,
            acked=self._acked,
            last_error=self._last_error,
        )

    # All that touches the disk runs off the loop, and under the lock: a file is not closed while it is being
    # read.

    def _step(self) -> list[Delivery]:
        """Open the file if need be, and read what is new. Empty when there is nothing, or no file."""
        with self._lock, self._explaining():
            if self._tail is None:
                self._open()
            assert self._tail is not None
            tail = self._tail
            return self._deliver(tail, self._read(tail))
        return []

    def _open(self) -> None:
        """From the persisted position, else where the site file says. Raises OSError."""
        tail = self._resume()
        if tail is None:
            tail = Tail(self._path)
            if self._position is None and self._config.start == "end" and not self._missed:
                tail.read_offset = tail.line_start()
        self._use(tail)

    def _resume(self) -> Tail | None:
        if self._position is None:
            return None
        tail = open_at(self._path, self._position)
        if tail is None and self._path.exists():
            self._say(
                NoticeKind.GAP, f"the file that was read before is gone; {self._path} is read from its start"
            )
            self._position = None
            self._missed = True
        return tail

    def _use(self, tail: Tail) -> None:
        self._tail = tail
        self._offset = tail.read_offset
        self._position = tail.position(self._offset)
        self._cutter = None
        self._quiet_since = None
        self._last_error = None
        self._connects += 1

    # Reading.

    def _read(self, tail: Tail) -> list[bytes]:
        """The next payloads. None of them when the file has nothing new now, or (`_ended`) never will."""
        if tail.rewritten():
            return self._begin_again(tail)
        data = tail.read(READ_BYTES)
        if data:
            self._quiet_since = None
            return self._cut(tail, data)
        if not self._config.follow:
            self._ended = True
            return self._rest_of_line()
        return self._rotate(tail)

    def _cut(self, tail: Tail, data: bytes) -> list[bytes]:
        if self._cutter is None:
            self._cutter = LineCutter(newline_of(tail.head(), self._config.encoding))
        before = self._cutter.splits
        payloads = self._cutter.feed(data)
        if split := self._cutter.splits - before:
            self._say(NoticeKind.LINE_SPLIT, f"a line of {tail.path} is too long and comes in parts", split)
        return payloads

    def _rest_of_line(self) -> list[bytes]:
        return [] if self._cutter is None else self._cutter.finish()

    def _begin_again(self, tail: Tail) -> list[bytes]:
        """The file was emptied in place. What was read of its last line is still a line."""
        if rest := self._rest_of_line():
            return rest
        self._say(NoticeKind.TRUNCATED, f"{tail.path} was emptied or rewritten; it is read from its start")
        tail.restart()
        self._use(tail)
        return []

    def _rotate(self, tail: Tail) -> list[bytes]:
        """At the end of a followed file: go on to its successor once nobody writes to it any more."""
        following = successor(self._path, tail.inode)
        if following is None:
            return []
        now = time.monotonic()
        if self._quiet_since is None:
            self._quiet_since = now
        if now - self._quiet_since < self._grace_s:
            return []
        if rest := self._rest_of_line():
            return rest
        fresh = Tail(following)
        tail.close()
        self._use(fresh)
        self._say(NoticeKind.ROTATED, f"{self._path} was rotated; reading {following}")
        return []

    def _deliver(self, tail: Tail, payloads: list[bytes]) -> list[Delivery]:
        if not payloads:
            return []
        now_us = time.time_ns() // 1000
        batch = []
        for payload in payloads:
            self._offset += len(payload)
            batch.append(Delivery(str(self._config.path), payload, now_us, position=self._offset))
        self._reached = tail.position(self._offset)
        self._received += len(batch)
        return batch

    @contextlib.contextmanager
    def _explaining(self) -> Iterator[None]:
        """Turns an OSError into what it means for this source.

        A missing file that is followed is waited for.
        """
        try:
            yield
        except FileNotFoundError:
            self._last_error = f"{self._path} does not exist"
            if not self._config.follow:
                raise SourceError(f"{self._last_error}: correct path: in the site file") from None
            if not self._missed:
                self._say(NoticeKind.UNREACHABLE, f"{self._path} does not exist yet; waiting for it")
            self._missed = True
        except OSError as error:
            self._last_error = f"{self._path} cannot be read: {error.strerror or error}"
            raise SourceRefused(
                f"{self._last_error}: check path: in the site file and who may read it"
            ) from None

    def _let_go(self) -> None:
        with self._lock:
            if self._tail is not None:
                self._tail.close()
                self._tail = None

    def _check(self) -> Check:
        try:
            Tail(self._path).close()
        except FileNotFoundError:
            return Check(
                self._config.follow, f"{self._path} does not exist" + (" yet" if self._config.follow else "")
            )
        except OSError as error:
            return Check(False, f"{self._path} cannot be read: {error.strerror or error}")
        return Check(True, f"{self._path} can be read")

    async def _rest(self) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(POLL_S):
                await self._paused.wait()

    def _say(self, kind: NoticeKind, detail: str, count: int = 1) -> None:
        self._said.append(Notice(self.name, kind, detail, count))

    def _flush_notices(self) -> None:
        said, self._said = self._said, []
        for notice in said:
            self._notices(notice)
