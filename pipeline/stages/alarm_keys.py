"""alarm: what is known of each alarm key, kept in memory and written through with each batch.

The store is the truth. What is here may be thrown away at any time (`forget`), and must be after a rollback.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sqlalchemy import Connection

from pipeline.store import alarms
from pipeline.store.alarms import Clear, Opening
from schemas.events import EventId
from schemas.ticket import AlarmKey

# A key takes about a kilobyte here: 50 MB would be too much on a small gateway, 20 MB is not.
KEYS_MAX = 20_000


@dataclass(slots=True, eq=False)
class KeyState:
    """One alarm key: the opening that comes last by position, the highest number, the last return to normal.

    `history` holds all openings, in order, once a late event of this batch has asked for them.
    """

    latest: Opening | None = None
    number: int = 0
    cleared: Clear | None = None
    history: list[Opening] | None = None
    fresh: list[Opening] = field(default_factory=list)

    def next_clear(self, position: EventId) -> Clear | None:
        """The first return to normal behind `position` that is known."""
        known = [
            Clear(opening.cleared, opening.cleared_at_us or 0)
            for opening in self.history or ()
            if opening.cleared is not None
        ]
        if self.cleared is not None:
            known.append(self.cleared)
        return min((clear for clear in known if clear.position > position), default=None)

    def holding(self, position: EventId) -> Opening | None:
        """The opening in whose time `position` lies; `history` must be there when it is before the latest."""
        if self.history is None:
            return self.latest if self.latest is not None and self.latest.holds(position) else None
        return next((opening for opening in self.history if opening.holds(position)), None)

    def following(self, position: EventId) -> Opening | None:
        """The first opening that opened behind `position`."""
        return next((opening for opening in self.history or () if opening.opened > position), None)


class Keys:
    """The cache: states by key, what changed in this batch, and the flush that writes it."""

    def __init__(self, keys_max: int = KEYS_MAX) -> None:
        self._max = keys_max
        self._states: OrderedDict[AlarmKey, KeyState] = OrderedDict()
        self._changed: dict[Opening, None] = {}
        self._cleared: dict[AlarmKey, Clear] = {}
        self._taken: dict[AlarmKey, None] = {}
        self._touched: dict[KeyState, None] = {}
        self._scopes: dict[tuple[str, str], dict[AlarmKey, None]] = {}

    def forget(self) -> None:
        """Know nothing any more: the next batch reads the store again."""
        self._states.clear()
        self._drop_batch()

    def load(self, connection: Connection, keys: Iterable[AlarmKey]) -> None:
        """Have the state of every key in memory."""
        wanted = dict.fromkeys(keys)
        missing = [key for key in wanted if key not in self._states]
        for key in wanted:
            if key in self._states:
                self._states.move_to_end(key)
        if not missing:
            return
        openings = alarms.latest(connection, missing)
        clears = alarms.clears(connection, missing)
        for key in missing:
            latest, number = openings.get(key, (None, 0))
            self._states[key] = KeyState(latest, number, clears.get(key))

    def state(self, key: AlarmKey) -> KeyState:
        """The state of a key that `load` was asked for."""
        return self._states[key]

    def open_in_scope(self, found: Mapping[tuple[str, str], Iterable[AlarmKey]]) -> None:
        """Which loaded keys are open in the scopes that this batch returns to normal."""
        self._scopes.update({scope: dict.fromkeys(keys) for scope, keys in found.items()})

    def in_scope(self, scope: str, cause: str) -> list[AlarmKey]:
        """Keys of that cause that are open in the scope now."""
        keys = self._scopes.get((scope, cause), ())
        return [key for key in keys if self._is_open(self._states[key].latest)]

    @staticmethod
    def _is_open(opening: Opening | None) -> bool:
        return opening is not None and opening.cleared is None

    def known(self, connection: Connection, stored: Opening) -> Opening:
        """The opening as it is in memory; `stored` is what the store says of it. Its key is loaded."""
        state = self._states[stored.key]
        if state.latest is not None and state.latest.id == stored.id:
            return state.latest
        history = self.with_history(connection, stored.key).history or ()
        return next(opening for opening in history if opening.id == stored.id)

    def with_history(self, connection: Connection, key: AlarmKey) -> KeyState:
        """The state with all openings of the key, those of this batch among them."""
        state = self._states[key]
        if state.history is None:
            known = {opening.id: opening for opening in (state.latest,) if opening is not None}
            known |= {opening.id: opening for opening in self._changed if opening.key == key}
            stored = [known.get(opening.id, opening) for opening in alarms.of_key(connection, key)]
            state.history = sorted([*stored, *state.fresh], key=lambda opening: opening.opened)
            self._touched[state] = None
        return state

    def add(self, opening: Opening) -> None:
        """A new opening of a loaded key. Its number is given here."""
        state = self._states[opening.key]
        state.number += 1
        opening.number = state.number
        self._touched[state] = None
        self._scopes.setdefault((opening.scope, opening.cause), {})[opening.key] = None
        state.fresh.append(opening)
        if state.latest is None or opening.opened > state.latest.opened:
            state.latest = opening
        if state.history is not None:
            state.history.append(opening)
            state.history.sort(key=lambda each: each.opened)

    def change(self, opening: Opening) -> None:
        """The opening is not as it is stored any more."""
        if opening.id is not None:
            self._changed[opening] = None

    def clear(self, key: AlarmKey, clear: Clear) -> None:
        """A return to normal; of two the later one by position is kept."""
        state = self._states[key]
        if state.cleared is None or clear.position > state.cleared.position:
            state.cleared = self._cleared[key] = clear

    def take(self, key: AlarmKey, by: AlarmKey) -> None:
        """The return to normal that waits under `key` was that of `by`, and is no other alarm's any more."""
        state = self._states[key]
        if state.cleared is not None:
            self.clear(by, state.cleared)
            state.cleared = None
            self._cleared.pop(key, None)
            self._taken[key] = None

    def flush(self, connection: Connection) -> None:
        """Write the batch. New openings have their ids afterwards."""
        alarms.insert(connection, [opening for state in self._touched for opening in state.fresh])
        alarms.update(connection, list(self._changed))
        alarms.drop_clears(connection, self._taken)
        alarms.put_clears(connection, self._cleared.items())
        self._drop_batch()
        while len(self._states) > self._max:
            self._states.popitem(last=False)

    def _drop_batch(self) -> None:
        for state in self._touched:
            state.history = None
            state.fresh = []
        self._touched.clear()
        self._scopes.clear()
        self._changed.clear()
        self._cleared.clear()
        self._taken.clear()
