"""When a lane counts as stuck (work, and no move for a minute), and how a drain goes."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st
from structlog.testing import capture_logs

from pipeline.notify import Notifier
from pipeline.service import HEARTBEAT_S, STALLED_S, Service

MINUTES = st.floats(0, 3 * STALLED_S)


@dataclass
class Lane:
    name: str = "lane"
    drains: bool = True
    progressed_at: float = 0.0
    work: int = 0

    def backlog(self) -> int:
        return self.work

    async def run(self) -> None:
        """Nothing runs here."""


class Watched:
    """A service with one lane and a clock that stands until it is moved. Every heartbeat looks at it."""

    def __init__(self) -> None:
        self.lane, self.now_s = Lane(progressed_at=1000.0), 1000.0
        self.service = Service(
            sources=[],
            intakes=[],
            lanes=[self.lane],
            tasks=[],
            settled=_settled,
            release=_settled,
            notifier=Notifier(),
            pinged=lambda sent: None,
            clock_s=lambda: self.now_s,
        )

    def wait(self, seconds: float) -> None:
        end = self.now_s + seconds
        while self.now_s + HEARTBEAT_S < end:
            self.now_s += HEARTBEAT_S
            self.service.stalled()
        self.now_s = end

    @property
    def stuck(self) -> bool:
        return bool(self.service.stalled())


async def _settled() -> bool:
    return True


def test_work_that_comes_after_a_quiet_hour_is_no_stall() -> None:
    it = Watched()
    it.wait(3600)
    it.lane.work = 5
    assert not it.stuck
    it.wait(STALLED_S - 1)
    assert not it.stuck
    it.wait(2)
    assert it.stuck


def test_a_lane_that_moved_has_a_minute_again() -> None:
    it = Watched()
    it.lane.work = 5
    it.wait(2 * STALLED_S)
    assert it.stuck
    it.lane.progressed_at = it.now_s
    assert not it.stuck
    it.wait(STALLED_S)
    assert it.stuck


@given(st.lists(st.tuples(st.sampled_from(["arrive", "move", "finish"]), MINUTES), max_size=30))
def test_only_time_with_work_counts(happenings: list[tuple[str, float]]) -> None:
    """Whatever happens: stuck is a lane whose work came, and whose last move was, a minute ago or longer."""
    it, came = Watched(), None
    for what, then_s in happenings:
        if what == "arrive":
            came = it.now_s if came is None else came
            it.lane.work += 1
        elif came is not None:
            it.lane.progressed_at = it.now_s
            if what == "finish":
                came, it.lane.work = None, 0
        it.service.stalled()  # the heartbeat that notices it
        it.wait(then_s)
        expected = came is not None and it.now_s - max(came, it.lane.progressed_at) >= STALLED_S
        assert it.stuck == expected


# --- the drain ----------------------------------------------------------------------------------------


class Whole:
    """A service of one source and two lanes, one of which drains; `told` is what happened, in order."""

    def __init__(self, rounds: int, drain_s: float = 60.0) -> None:
        self.told: list[str] = []
        self.rounds = rounds
        settle, read = _Lane(self, "settle", True), _Lane(self, "read", False)
        self.service = Service(
            sources=[_Source(self)],  # type: ignore[list-item]
            intakes=[_Lane(self, "intake", True)],  # type: ignore[list-item]
            lanes=[read, settle],
            tasks=[],
            settled=self.settled,
            release=self.release,
            notifier=Notifier(),
            pinged=lambda sent: None,
            drain_s=drain_s,
        )

    async def settled(self) -> bool:
        self.told.append("asked")
        self.rounds -= 1
        return self.rounds < 0

    async def release(self) -> None:
        self.told.append("release")
        await asyncio.sleep(0)
        self.told.append("released")

    async def drain(self) -> list[str]:
        self.service.stop.set()
        await self.service.run()
        return self.told


class _Lane(Lane):
    def __init__(self, whole: Whole, name: str, drains: bool) -> None:
        super().__init__(name, drains)
        self._told = whole.told

    async def run(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self._told.append(f"{self.name} ends")


class _Source:
    name = "line7"

    def __init__(self, whole: Whole) -> None:
        self._told = whole.told

    async def pause(self) -> None:
        self._told.append("pause")

    async def close(self) -> None:
        self._told.append("close")


async def test_a_drain_settles_and_reads_nothing_more() -> None:
    """The model is let go beside the drain, not behind it, and nothing new is read meanwhile."""
    told = await Whole(rounds=2).drain()
    assert told[0] == "read ends"
    assert [each for each in told if not each.startswith("release")] == [
        *("read ends", "pause", "asked", "asked", "asked", "intake ends", "close", "settle ends")
    ]
    assert told.index("release") < told.index("intake ends")
    assert "released" in told


async def test_a_drain_that_takes_too_long_is_cut_and_says_so() -> None:
    with capture_logs() as logs:
        told = await Whole(rounds=1_000_000, drain_s=0.0).drain()
    assert told.count("asked") == 1 and "close" in told
    assert [entry["event"] for entry in logs if entry["log_level"] == "warning"] == ["service.drain_cut"]
    with capture_logs() as logs:
        await Whole(rounds=0, drain_s=0.0).drain()
    assert not [entry for entry in logs if entry["log_level"] == "warning"]
