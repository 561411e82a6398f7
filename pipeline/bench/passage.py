"""One passage of lines from the broker to where they end, and what it took."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

# Of both sides: as many messages under way as the gateway's own default, and a session that outlives a round.
RECEIVE_MAXIMUM = 200
EXPIRY_S = 3600

# No passage takes that long unless something is broken.
PATIENCE_S = 90.0


# Lets the lines come, for a broker that does not keep them for who is away; the time from which they count.
Go = Callable[[], float]


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two that take turns. Its topic is its own: the lines of one do not pile up for the other."""

    client_id: str
    topic: str


GATEWAY = Side("andon-bench", "bench/gateway/log")
BARE = Side("andon-bench-bare", "bench/bare/log")


@dataclass(frozen=True, slots=True)
class Passage:
    """`seconds` from connecting (or `Go`) to the last line's end; `bytes_written` includes checkpoints."""

    lines: int
    seconds: float
    commits: int
    bytes_written: int

    @property
    def lines_per_s(self) -> float:
        return self.lines / self.seconds

    @property
    def commits_per_s(self) -> float:
        return self.commits / self.seconds

    @property
    def lines_per_commit(self) -> float:
        return self.lines / self.commits

    @property
    def bytes_per_line(self) -> float:
        return self.bytes_written / self.lines
