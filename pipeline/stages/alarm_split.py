"""alarm: what a late return to normal does to an opening that went on behind it: two openings, each with
its events.

An opening's events are in the store (those of earlier batches) and in the results of this one. Those behind
the return go over to a second opening. Of the events of an opening with a ticket exactly one is the one
that opened it: that is how tickets are told from occurrences in the totals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import Connection

from pipeline.stages.change import Change
from pipeline.store import alarms, events
from pipeline.store.alarms import Occurrence, Opening
from pipeline.store.totals import OPENED
from schemas.events import EventId
from schemas.ticket import Outcome

OCCURRENCE = "occurrence"


@dataclass(slots=True)
class Result:
    """How one change of this batch ends."""

    change: Change
    outcome: Outcome
    reason: str
    opening: Opening | None = None
    of: EventId | None = None
    count: int = 1

    def opens(self) -> None:
        self.outcome, self.reason = Outcome.TICKET, OPENED


class Splits:
    """The splits of one batch. `inherited` are stored events that an opening took over from another one."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._inherited: dict[Opening, list[Occurrence]] = {}
        self._parents: list[Opening] = []

    def stored_behind(self, opening: Opening, position: EventId) -> list[Occurrence]:
        """The opening's stored events behind `position`."""
        inherited = [each for each in self._inherited.get(opening, []) if each.row.id > position]
        if opening.id is None:
            return inherited
        return inherited + alarms.occurrences_after(self._connection, opening.id, position)

    def last_before(self, opening: Opening, position: EventId) -> EventId:
        """The opening's last stored event before `position`; where it opened when none is kept any more."""
        known = [each.row.id for each in self._inherited.get(opening, []) if each.row.id < position]
        if opening.id is not None:
            last = alarms.last_before(self._connection, opening.id, position)
            known += [last] if last is not None else []
        return max(known, default=opening.opened)

    def hand_over(self, opening: Opening, new: Opening, stored: list[Occurrence]) -> None:
        """`stored` are the new opening's from now on."""
        gone = {each.row.id for each in stored}
        kept = [each for each in self._inherited.get(opening, []) if each.row.id not in gone]
        if opening in self._inherited:
            self._inherited[opening] = kept
        self._inherited[new] = stored
        self._parents.append(opening)

    def finish(self, results: Mapping[Opening, Sequence[Result]]) -> None:
        """Move the stored events, once every opening has its id, and see that each ticket has one opener."""
        for parent in dict.fromkeys(self._parents):
            if parent.ticket_key is not None and parent not in self._inherited:
                self._find_opener(parent, results.get(parent, ()))
        for opening, stored in self._inherited.items():
            self._move(opening, stored, results.get(opening, ()))

    def _move(self, opening: Opening, stored: Iterable[Occurrence], results: Sequence[Result]) -> None:
        for result in results:
            if result.reason == OPENED:
                result.reason = OCCURRENCE
        first = opening.opened if opening.ticket_key is not None else None
        for result in results:
            if result.change.id == first:
                result.opens()
        for each in stored:
            reason = OCCURRENCE if each.row.reason == OPENED else each.row.reason
            row = each.row._replace(opening_id=opening.id, reason=reason)
            if row.id == first:
                row = row._replace(state=Outcome.TICKET, reason=OPENED)
            events.move_all(self._connection, each.row.state, [row])

    def _find_opener(self, opening: Opening, results: Sequence[Result]) -> None:
        """An opening that kept its ticket but not the event that asked for it: its first one counts
        instead.
        """
        behind = opening.cleared
        if opening.id is None or behind is None or any(result.reason == OPENED for result in results):
            return
        if alarms.opener_before(self._connection, opening.id, behind) is not None:
            return
        stored = alarms.first(self._connection, opening.id)
        first = min(
            (result for result in results if result.count), key=lambda each: each.change.id, default=None
        )
        if first is not None and (stored is None or first.change.id < stored.id):
            first.opens()
        elif stored is not None and stored.id < behind:
            row = stored._replace(state=Outcome.TICKET, reason=OPENED)
            events.move_all(self._connection, stored.state, [row])
