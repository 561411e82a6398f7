"""A queue of questions to answer: lines that nobody can tell the severity of."""

from __future__ import annotations

from rig import Rig, verdict
from sqlalchemy import text

from schemas.extraction import Verdict


def unsure(line: str) -> Verdict:
    """A reader that has seen the device, and cannot tell how severe the line is."""
    return verdict(line, None, device=line.split()[0])


def held(n: int, what: str = "grinds") -> list[str]:
    return [f"press7 spindle {what} at {number} rpm" for number in range(100, 100 + n)]


async def overdue(rig: Rig) -> None:
    """What is unread has waited too long, and is asked raw."""
    await rig.settle()
    rig.slow._max_wait_s = -1.0
    await rig.write(lambda connection: connection.execute(text("UPDATE unread SET rank = 2")))
    await rig.slow.overdue()
    rig.slow._max_wait_s = 60.0


async def open_id(rig: Rig) -> int:
    (group,) = await rig.core.desk.list()
    return int(group["id"])
