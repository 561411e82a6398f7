"""Standard input as a source: whole lines as they come, until its end.

Nothing is acknowledged and nothing comes twice.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from collections.abc import AsyncIterator, Mapping, Sequence

from pydantic import JsonValue

from connectors.base import Check, Delivery, Notice, NoticeKind, Notices, SourceStats, log_notice
from connectors.inbox import QUEUE_MESSAGES, Inbox
from connectors.lines import LineCutter, newline_of
from schemas.errors import SourceError

# A pipe holds 64 KB on Linux.
READ_BYTES = 64 * 1024

# Payloads of one batch: at most 4 MB.
BATCH_MAX = 64


class StdinSource:
    """Lines of a byte stream, file descriptor 0 unless told otherwise. See connectors.base.Source.

    A thread of its own reads it: a read cannot be cancelled, and must not keep the process from ending.
    """

    def __init__(
        self,
        name: str,
        *,
        encoding: str | None = None,
        notices: Notices = log_notice,
        descriptor: int = 0,
        queue_messages: int = QUEUE_MESSAGES,
    ) -> None:
        self.name = name
        self._encoding = encoding
        self._notices = notices
        self._descriptor = descriptor
        self._queue_messages = queue_messages
        self._room = threading.Event()
        self._inbox: Inbox | None = None
        self._received = 0
        self._acked = 0
        self._last_error: str | None = None

    async def batches(self) -> AsyncIterator[Sequence[Delivery]]:
        if self._inbox is not None:
            raise SourceError(f"source {self.name} is being read already")
        loop = asyncio.get_running_loop()
        inbox = self._inbox = Inbox(loop, on_room=self._room.set, messages_max=self._queue_messages)
        threading.Thread(target=self._run, args=(inbox, loop), name=f"stdin-{self.name}", daemon=True).start()
        while batch := await inbox.take(BATCH_MAX):
            yield batch

    async def ack(self, deliveries: Sequence[Delivery]) -> None:
        """Counts only: a stream is told nothing."""
        self._acked += len(deliveries)

    async def pause(self) -> None:
        """Stop. What has been read is still yielded; what the writer writes after that goes nowhere."""
        if self._inbox is not None:
            self._inbox.end()

    async def close(self) -> None:
        """Nothing to do: the stream is not ours to close."""

    async def check(self) -> Check:
        return Check(True, "standard input")

    @property
    def position(self) -> Mapping[str, JsonValue]:
        """Empty: a stream cannot be taken up again."""
        return {}

    def stats(self) -> SourceStats:
        return SourceStats(
            connected=self._inbox is not None,
            connects=int(self._inbox is not None),
            received=self._received,
            acked=self._acked,
            queue_depth=0 if self._inbox is None else len(self._inbox),
            last_error=self._last_error,
        )

    def _run(self, inbox: Inbox, loop: asyncio.AbstractEventLoop) -> None:
        try:
            self._pump(inbox, loop)
        except Exception as error:
            self._last_error = f"standard input cannot be read: {error}"
            inbox.end(SourceError(self._last_error))
        else:
            inbox.end()

    def _pump(self, inbox: Inbox, loop: asyncio.AbstractEventLoop) -> None:
        cutter: LineCutter | None = None
        offset = 0
        # Not through sys.stdin: a thread that is blocked in there holds a lock that the interpreter needs to
        # exit.
        while data := os.read(self._descriptor, READ_BYTES):
            cutter = cutter or LineCutter(newline_of(data, self._encoding))
            splits = cutter.splits
            offset = self._put(inbox, cutter.feed(data), offset)
            if cutter.splits > splits:
                notice = Notice(self.name, NoticeKind.LINE_SPLIT, "a line is too long and comes in parts")
                with contextlib.suppress(RuntimeError):  # the loop is closed: nobody listens any more
                    loop.call_soon_threadsafe(self._notices, notice)
        if cutter is not None:
            self._put(inbox, cutter.finish(), offset)

    def _put(self, inbox: Inbox, payloads: Sequence[bytes], offset: int) -> int:
        """Queue the payloads, waiting for room; returns the offset behind them."""
        now_us = time.time_ns() // 1000
        for payload in payloads:
            if inbox.full:
                self._room.clear()
                inbox.flush()
                if not inbox.wait_for_room():
                    self._room.wait()
            offset += len(payload)
            self._received += 1
            inbox.put(Delivery("stdin", payload, now_us, position=offset))
        inbox.flush()
        return offset
