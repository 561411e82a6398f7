"""When a lane counts as stuck: it has work, and neither began nor moved for a minute."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from pipeline.notify import Notifier
from pipeline.service import HEARTBEAT_S, STALLED_S, Service

MINUTES = st.floats(0, 3 * STALLED_S)


@dataclass
class Lane:
    name: str = "lane"
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
