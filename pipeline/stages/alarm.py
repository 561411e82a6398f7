"""alarm: one alarm a key, one opening at a time, its occurrences counted in place.

Key: (asset, else source and topic; cause). Events are applied by position (journal sequence and index), not
by the time at which they were read: a fault read after its return to normal opens as already cleared; one
that lies in the time of an earlier opening is an occurrence of that; a return to normal read late splits an
opening whose later occurrences came behind it. Why: lines of new patterns wait for the model while others
go on.

Of returns to normal that closed nothing only the last one of a key is kept: a late fault before two such
returns counts as open until the last one.

A return to normal need not name the component as its fault did. One that names the component ends the alarm
of that; else, like one that names none, the only alarm that is open for that cause at its place, when not
both name one. Where several are open that it may be about, a person is asked. A return ends one alarm: an
alarm is left open rather than ended by a return that may be another's. So is one whose fault is read late and
names no component when the return that came before it does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlalchemy import Connection

from pipeline.stages.alarm_batch import RETURNED, Batch
from pipeline.stages.alarm_keys import KEYS_MAX, Keys
from pipeline.stages.alarm_split import Result
from pipeline.stages.change import Change
from pipeline.stages.decide import ROUTINE
from pipeline.stages.route import Router
from pipeline.store import alarms
from schemas.events import EventId
from schemas.ticket import AlarmKey, Outcome, Settlement


class Alarms:
    """Applies changes in the transaction that settles their events. Owned by the store's writer thread.

    After a transaction that did not commit `forget` must be called in that thread, before the next one: what
    is in memory is ahead of the store then.
    """

    def __init__(self, router: Router, site: str = "", keys_max: int = KEYS_MAX) -> None:
        self._router = router
        self._site = site
        self._keys = Keys(keys_max)

    def forget(self) -> None:
        self._keys.forget()

    def apply(self, connection: Connection, changes: Sequence[Change], now_us: int) -> list[Settlement]:
        """Settle events that raise alarms or return them to normal, in order of `changes`.

        Writes openings, returns to normal and outbox rows; moves events that a split gives to another
        opening. Writes nothing of the given events: that is the caller's, with the settlements.
        """
        if not changes:
            return []
        try:
            return self._apply(connection, changes, now_us)
        except BaseException:
            self.forget()
            raise

    def _apply(self, connection: Connection, changes: Sequence[Change], now_us: int) -> list[Settlement]:
        self._load(connection, changes)
        batch = Batch(connection, self._keys, self._router, self._site, now_us)
        batch.fold_into(self._folded(connection, changes))
        for change in sorted(changes, key=_order):
            _apply_one(batch, change)
        batch.finish()
        return [_settlement(batch.results[change.id]) for change in changes]

    def _load(self, connection: Connection, changes: Sequence[Change]) -> None:
        """Every key that this batch may touch, in a few statements."""
        scopes = {(c.facts.scope, c.cause) for c in changes if c.clears}
        found = alarms.open_in_scope(connection, [(scope, str(cause)) for scope, cause in scopes])
        keys: dict[AlarmKey, None] = dict.fromkeys(key for group in found.values() for key in group)
        for change in changes:
            keys |= dict.fromkeys(_keys_of(change))
        self._keys.load(connection, keys)
        self._keys.open_in_scope(found)

    def _folded(self, connection: Connection, changes: Sequence[Change]) -> dict[EventId, alarms.Opening]:
        """Openings that late lines of JSON documents belong to, because a reading beside them raised one."""
        lines = [c.id for c in changes if c.raises and c.is_line and c.text.lstrip()[:1] in ("{", "[")]
        folded = alarms.folded(connection, lines) if lines else {}
        stored = alarms.by_ids(connection, set(folded.values())) if folded else {}
        self._keys.load(connection, (opening.key for opening in stored.values()))
        return {
            line: self._keys.known(connection, stored[opening_id])
            for line, opening_id in folded.items()
            if opening_id in stored
        }


def _keys_of(change: Change) -> Iterable[AlarmKey]:
    subject, scope = change.facts.subject, change.facts.scope
    for cause in change.returns:
        yield AlarmKey(subject, cause)
    if change.raises or change.clears:
        yield change.key
    if change.raises and subject != scope:
        yield AlarmKey(scope, change.key.cause)


def _order(change: Change) -> tuple[int, int, bool, int]:
    """By position; in a document readings first: their rule names an alarm better than a line's pattern."""
    return change.id.seq, change.document.index, change.is_line, change.id.index


def _apply_one(batch: Batch, change: Change) -> None:
    returned = [batch.returned(AlarmKey(change.facts.subject, cause), change) for cause in change.returns]
    if change.clears:
        batch.cleared(change)
    elif change.raises:
        batch.raised(change)
    else:
        batch.record(Result(change, Outcome.DISCARD, RETURNED if any(returned) else ROUTINE))


def _settlement(result: Result) -> Settlement:
    opening = result.opening
    return Settlement(
        result.change.id,
        result.outcome,
        result.reason,
        alarm_id=opening.id if opening is not None else None,
        of=result.of,
    )
