"""What the event loop and the link's thread share: counters one way, wishes the other."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from connectors.base import NoticeKind

# How the thread says something to people: kind, one line of text, how many.
Tell = Callable[[NoticeKind, str, int], None]


@dataclass(slots=True)
class Counters:
    """Written by the link's thread only; whoever reads them may be a moment behind."""

    connected: bool = False
    connects: int = 0
    received: int = 0
    acked: int = 0
    dropped_qos0: int = 0
    resent: int = 0
    odd_topics: int = 0
    session_lost: int = 0
    last_error: str | None = None


class Mailbox:
    """What the event loop wants of the link's thread. A byte through a socket pair wakes it from its poll."""

    def __init__(self) -> None:
        self.acks: deque[tuple[str, Sequence[int]]] = deque()
        self.paused = False
        self.stopping = threading.Event()
        self._read, self._write = socket.socketpair()
        self._read.setblocking(False)
        self._write.setblocking(False)

    def wake(self) -> None:
        # Full: the thread has been woken already. Closed: it has gone.
        with contextlib.suppress(OSError):
            self._write.send(b"\0")

    def fileno(self) -> int:
        return self._read.fileno()

    def clear(self) -> None:
        with contextlib.suppress(OSError):
            self._read.recv(4096)

    def close(self) -> None:
        self._read.close()
        self._write.close()
