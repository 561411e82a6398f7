"""alarm: one batch of changes against the keys: raise, return to normal, count, ask for tickets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sqlalchemy import Connection

from pipeline.fields.definition import fold
from pipeline.stages import questions
from pipeline.stages import ticket as tickets
from pipeline.stages.alarm_keys import Keys, KeyState
from pipeline.stages.alarm_split import OCCURRENCE, Result, Splits
from pipeline.stages.change import Change
from pipeline.stages.judge import Judged
from pipeline.stages.route import Route, Router
from pipeline.store import outbox, reviews
from pipeline.store.alarms import Clear, Occurrence, Opening
from pipeline.store.totals import OPENED
from schemas.events import EventId
from schemas.ticket import AlarmKey, Outcome, Ticket

KNOWN = "retained_known"
RETURNED = "return_to_normal"
# Several alarms are open that a return to normal may be about.
AMBIGUOUS = "ambiguous_return"
OBSERVED, BELOW, NO_ROUTE = "observed", "below_ticket_from", "no_route"


@dataclass(frozen=True, slots=True)
class Wanted:
    """A ticket to be written once its opening has an id. `change` asks for it; a split has only the
    `origin`.
    """

    opening: Opening
    sink: str
    change: Change | None
    origin: Opening | None = None


class Batch:
    """One transaction's worth of changes, in order of position."""

    def __init__(self, connection: Connection, keys: Keys, router: Router, site: str, now_us: int) -> None:
        self.results: dict[EventId, Result] = {}
        self._connection = connection
        self._keys = keys
        self._router = router
        self._site = site
        self._now_us = now_us
        self._documents: dict[EventId, Opening] = {}
        self._counted: dict[Opening, list[Result]] = {}
        self._wanted: list[Wanted] = []
        self._splits = Splits(connection)
        self._questions: list[reviews.NewReview] = []

    def fold_into(self, documents: Mapping[EventId, Opening]) -> None:
        """Lines whose document already counts for an opening."""
        self._documents.update(documents)

    def record(self, result: Result) -> None:
        self.results[result.change.id] = result

    def finish(self) -> None:
        """Write openings, returns to normal, moved events, outbox rows and questions."""
        self._keys.flush(self._connection)
        self._splits.finish(self._counted)
        intents = [
            outbox.Intent(wanted.sink, self._ticket(wanted), wanted.opening.id) for wanted in self._wanted
        ]
        outbox.put(self._connection, intents, self._now_us)
        reviews.put(self._connection, self._questions)

    # --- raise ------------------------------------------------------------------------------------

    def raised(self, change: Change) -> None:
        folded = self._documents.get(change.document) if change.is_line else None
        if folded is not None:
            self._count(folded, change, count=0)
            return
        opening = self._find_or_open(change)
        if opening is not None and not change.is_line:
            self._documents.setdefault(change.document, opening)

    def _find_or_open(self, change: Change) -> Opening | None:
        """The opening that this event belongs to; None when a retained message says nothing new."""
        key, position = change.key, change.id
        state = self._state(key, position)
        opening = state.holding(position)
        if change.event.retain and self._is_known(change, opening or state.latest, opening is not None):
            return None
        if opening is None:
            opening = self._joined(state, change)
        if opening is None:
            return self._open(state, change)
        self._count(opening, change, change.count)
        return opening

    def _state(self, key: AlarmKey, position: EventId) -> KeyState:
        """The key's state, with all its openings when `position` is before the latest."""
        state = self._keys.state(key)
        if state.latest is not None and position < state.latest.opened:
            return self._keys.with_history(self._connection, key)
        return state

    def _is_known(self, change: Change, opening: Opening | None, holds: bool) -> bool:
        """A retained message repeats an alarm that is open, or the very event that raised the last one."""
        if opening is None or not (holds or (change.is_dated and opening.line == change.text)):
            return False
        self.record(Result(change, Outcome.REPEAT, KNOWN, of=opening.opened))
        return True

    def _joined(self, state: KeyState, change: Change) -> Opening | None:
        """A late event before an opening, with no return to normal between: the opening began earlier."""
        following = state.following(change.id)
        clear = self._next_clear(state, change)
        if following is None or (clear is not None and clear.position < following.opened):
            return None
        following.opened = change.id
        return following

    def _next_clear(self, state: KeyState, change: Change) -> Clear | None:
        """The first return to normal behind the event: of its key, or one that names no component and has
        ended nothing yet."""
        clears = [state.next_clear(change.id), self._waiting(change)]
        return min((clear for clear in clears if clear is not None), default=None)

    def _waiting(self, change: Change) -> Clear | None:
        """A return behind the event that names no component, and has ended no alarm of that kind itself."""
        key = AlarmKey(change.facts.scope, change.key.cause)
        last = self._keys.state(key).cleared if key != change.key else None
        if last is None or last.position < change.id:
            return None
        state = self._state(key, last.position)
        known = state.history if state.history is not None else [state.latest]
        return None if any(each and each.cleared == last.position for each in known) else last

    def _open(self, state: KeyState, change: Change) -> Opening:
        clear = self._next_clear(state, change)
        if clear is not None and clear is self._waiting(change):
            self._keys.take(AlarmKey(change.facts.scope, change.key.cause), change.key)
        opening = Opening(
            subject=change.facts.subject,
            cause=change.key.cause,
            scope=change.facts.scope,
            number=0,
            severity=change.severity,
            category=change.decision.category.label,
            action=change.decision.action.label,
            source=change.event.source,
            topic=change.event.topic,
            line=change.text,
            opened=change.id,
            last=change.id,
            occurrences=0,
            first_seen_us=change.at_us,
            last_seen_us=change.at_us,
            cleared=clear.position if clear else None,
            cleared_at_us=clear.at_us if clear else None,
        )
        self._keys.add(opening)
        self._count(opening, change, change.count)
        return opening

    def _count(self, opening: Opening, change: Change, count: int) -> None:
        """One more occurrence. It may raise the severity, and so ask for the ticket the alarm had not."""
        opening.occurrences += count
        opening.last = max(opening.last, change.id)
        opening.first_seen_us = min(opening.first_seen_us, change.at_us)
        opening.last_seen_us = max(opening.last_seen_us, change.at_us)
        opening.severity = max(opening.severity, change.severity, key=lambda severity: severity.rank)
        opening.category = opening.category or change.decision.category.label
        opening.action = opening.action or change.decision.action.label
        self._keys.change(opening)
        reason = self._ask(opening, change)
        outcome = Outcome.DISCARD if opening.ticket_key is None else Outcome.TICKET
        result = Result(change, outcome, reason, opening, count=count)
        self.record(result)
        self._counted.setdefault(opening, []).append(result)

    def _ask(self, opening: Opening, change: Change) -> str:
        """Ask for a ticket where there is none and should be one; the reason of the event's outcome."""
        if opening.ticket_key is not None:
            return OCCURRENCE
        if not change.live:
            return OBSERVED
        route = self._route(opening, change.event.source)
        if route is None:
            return NO_ROUTE
        if not route.wants(opening.severity):
            return BELOW
        opening.ticket_key = tickets.ticket_key(self._site, opening)
        self._wanted.append(Wanted(opening, route.config.sink, change))
        return OPENED

    def _route(self, opening: Opening, source: str) -> Route | None:
        return self._router.route(source, opening.category, (opening.scope, opening.subject))

    # --- return to normal -------------------------------------------------------------------------

    def returned(self, key: AlarmKey, change: Change) -> bool:
        """A value is back behind a setpoint. Kept only of lines, which may come late: readings are too
        many.
        """
        state = self._state(key, change.id)
        closed = self._close(key, state, change)
        if closed or change.is_line:
            self._keys.clear(key, Clear(change.id, change.at_us))
        return closed

    def cleared(self, change: Change) -> None:
        """A line that says so."""
        open_keys = self._open_at(change)
        known = self._keys.state(change.key).latest
        ended = _ended(change, self._is_held(change.key, change), open_keys, known)
        if ended is None and not change.confirmed:
            self.record(Result(change, Outcome.REVIEW, AMBIGUOUS))
            self._ask_people(change, open_keys)
            return
        self.record(Result(change, Outcome.DISCARD, RETURNED))
        clear = Clear(change.id, change.at_us)
        keys = open_keys if ended is None else ended
        for key in keys:
            self._close(key, self._state(key, change.id), change)
            self._keys.clear(key, clear)
        if not keys and not change.facts.unsure:
            self._keys.clear(change.key, clear)  # its fault may be read later

    def _open_at(self, change: Change) -> list[AlarmKey]:
        """The alarms of its cause that were open at its place when it came."""
        keys = self._keys.in_scope(change.facts.scope, change.key.cause)
        return [key for key in keys if self._is_held(key, change)]

    def _is_held(self, key: AlarmKey, change: Change) -> bool:
        opening = self._state(key, change.id).holding(change.id)
        return opening is not None and opening.opened != change.id

    def _ask_people(self, change: Change, keys: Sequence[AlarmKey]) -> None:
        subjects = " and ".join(sorted(key.subject for key in keys))
        checked = replace(change.checked, reasons=[], details=[])
        checked.fail(AMBIGUOUS, f"{subjects}: open, and the line does not say which returned to normal")
        self._questions.append(questions.about(Judged(replace(change, checked=checked)), self._now_us))

    def _close(self, key: AlarmKey, state: KeyState, change: Change) -> bool:
        """End the opening in whose time the return lies; True when there is one."""
        opening = state.holding(change.id)
        if opening is None or opening.opened == change.id:
            return False
        if change.id < opening.last and not self._split(state, opening, change):
            return False
        opening.cleared, opening.cleared_at_us = change.id, change.at_us
        self._keys.change(opening)
        return True

    def _split(self, state: KeyState, opening: Opening, change: Change) -> bool:
        """A late return to normal: the occurrences behind it are a new opening. False when none is known
        any more.
        """
        position = change.id
        stored = self._splits.stored_behind(opening, position)
        counted = self._counted.get(opening, [])
        late = [result for result in counted if result.change.id > position]
        if not stored and not late:
            return False
        kept = [result for result in counted if result.change.id < position]
        before = self._splits.last_before(opening, position)
        new = _second(opening, stored, late)
        self._counted[opening], self._counted[new] = kept, late
        opening.last = max([before, *(result.change.id for result in kept)])
        opening.last_seen_us = min(opening.last_seen_us, change.at_us)
        opening.occurrences = max(1, opening.occurrences - new.occurrences)
        self._keys.add(new)
        self._splits.hand_over(opening, new, stored)
        self._share(opening, new, late)
        return True

    def _share(self, opening: Opening, new: Opening, late: list[Result]) -> None:
        """The new opening has a ticket when the old one has."""
        for result in late:
            result.opening = new
        if opening.ticket_key is None:
            return
        first = next((result.change for result in late if result.change.id == new.opened), None)
        new.ticket_key = tickets.ticket_key(self._site, new)
        self._wanted.append(Wanted(new, self._sink(opening), first, opening))

    def _sink(self, opening: Opening) -> str:
        """Where the opening's own ticket went or goes."""
        wanted = next((wanted for wanted in self._wanted if wanted.opening is opening), None)
        if wanted is not None:
            return wanted.sink
        entries = outbox.of_opening(self._connection, opening.id) if opening.id is not None else []
        if entries:
            return entries[0].intent.sink
        route = self._route(opening, opening.source)
        return route.config.sink if route is not None else ""

    # --- tickets ----------------------------------------------------------------------------------

    def _ticket(self, wanted: Wanted) -> Ticket:
        if wanted.change is not None:
            return tickets.build(wanted.opening, wanted.change)
        origin = wanted.origin
        entries = outbox.of_opening(self._connection, origin.id) if origin is not None and origin.id else []
        own = next((each for each in self._wanted if each.opening is origin and each.change), None)
        if own is not None and own.change is not None:
            base = tickets.build(own.opening, own.change)
        else:
            base = entries[0].intent.ticket if entries else tickets.bare(wanted.opening)
        return tickets.split_off(base, wanted.opening, wanted.opening.opened)


def _ended(
    change: Change, held: bool, open_keys: list[AlarmKey], known: Opening | None
) -> list[AlarmKey] | None:
    """The alarms that a return to normal ends; None: a person has to say which.

    `held`: that of its own key is open; `known` is the last one that its own key ever had.
    """
    own, facts = change.key, change.facts
    unnamed = AlarmKey(facts.scope, own.cause)
    others = [key for key in open_keys if key != own]
    if own == unnamed:
        maybe = [own, *others] if held else others
        return maybe if len(maybe) <= 1 and not (facts.unsure and others) else None
    if held:
        return [own]
    spelt = [key for key in others if fold(key.subject) == fold(own.subject)]
    if spelt:
        return spelt if len(spelt) == 1 else None
    if unnamed not in others or known is not None:
        return []  # alarms of other components; or faults of this one name it, and that one does not
    return others if len(others) == 1 else None


def _second(opening: Opening, stored: list[Occurrence], late: list[Result]) -> Opening:
    """The opening that a late return leaves behind itself."""
    positions = [occurrence.row.id for occurrence in stored] + [result.change.id for result in late]
    times = [occurrence.at_us for occurrence in stored] + [result.change.at_us for result in late]
    return Opening(
        subject=opening.subject,
        cause=opening.cause,
        scope=opening.scope,
        number=0,
        severity=opening.severity,
        category=opening.category,
        action=opening.action,
        source=opening.source,
        topic=opening.topic,
        line=opening.line,
        opened=min(positions),
        last=max(positions),
        occurrences=len(stored) + sum(result.count for result in late),
        first_seen_us=min(times),
        last_seen_us=max(times),
        cleared=opening.cleared,
        cleared_at_us=opening.cleared_at_us,
    )
