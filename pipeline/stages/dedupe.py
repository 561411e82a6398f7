"""dedupe: removes redelivery, and nothing else. Repeats of a fault are the alarm's business.

By connection (MQTT QoS 1): a broker sends again what the last connection had not confirmed (MQTT 5.0, 4.4).
The DUP flag alone cannot tell: bridges forward resends without it, and what comes with it may be new to us.
So the first messages of a connection are matched with those that the one before may not have confirmed, each
once, by packet id, topic and payload. That is a window of Receive Maximum messages; but Mosquitto (2.0.11)
sends far more than that, so messages with the DUP flag are matched with all that packet ids allow.

By content: an equal line of one topic, with the same date and time in it, within a window. Readings never
fold: two equal readings are two readings. Files do not redeliver.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from sqlalchemy import Connection, literal_column, select

from pipeline.stages import numbers
from pipeline.store.codec import to_us
from pipeline.store.seen import DIGEST_BYTES, SeenRow
from pipeline.store.tables import journal
from schemas.events import EventId, LogLine, Message
from schemas.ticket import Outcome, Settlement

REDELIVERED = "redelivered"
SAME_CONTENT = "same_content"

# How far back to look, in windows: a broker that is cut off again and again sends the same window each time.
COPIES_MAX = 8

# There are no more packet ids, so no more messages of a session can be unconfirmed, whatever a broker does.
PACKET_IDS = 65_535

# Messages read at once: their payloads may be large.
PAGE = 256

# Year to second; so many digits always fit so many bytes.
_TIME_DIGITS, _TIME_BYTES = 14, 6
_NO_DIGITS = bytes(set(range(128)) - set(b"0123456789"))


class Mark(NamedTuple):
    """What a message is known again by."""

    mid: int
    digest: bytes


@dataclass(frozen=True, slots=True)
class History:
    """What the journal holds before a message of a connection.

    `unconfirmed` are messages of the connections before it that may come again, with their seqs; those from
    `near_from` on may come without the DUP flag. `earlier` are those of its own. QoS 1 only.
    """

    unconfirmed: Mapping[Mark, int] = field(default_factory=dict)
    earlier: Sequence[Mark] = ()
    near_from: int = 0


def history(connection: Connection, message: Message, receive_maximum: int) -> History:
    """Read the history of `message` from the journal.

    Of earlier connections the last `receive_maximum` different messages count, whichever connection they
    came over: no more should be unconfirmed, and a connection that died early was not sent all that was left
    open. The copies it was sent count as one with their originals.

    For a message with the DUP flag, older ones count too, of each packet id the last: an id is used again
    only after its message was confirmed.
    """
    unconfirmed: dict[Mark, int] = {}
    earlier: list[Mark] = []
    used: set[int] = set()
    near_from = message.seq
    reach = max(PACKET_IDS if message.duplicate else 0, COPIES_MAX * receive_maximum)
    for seq, known, over in _backwards(connection, message, reach):
        if over == message.connection and not unconfirmed:
            earlier.append(known)
        elif len(unconfirmed) < receive_maximum:
            unconfirmed.setdefault(known, seq)
            near_from = seq
        elif not message.duplicate:
            break
        elif known.mid not in used:
            unconfirmed[known] = seq
        used.add(known.mid)
    return History(unconfirmed, earlier[::-1], near_from)


def _backwards(connection: Connection, message: Message, reach: int) -> Iterator[tuple[int, Mark, str]]:
    """The last `reach` QoS 1 messages of the source before `message`, from the end: seq, mark, connection."""
    before = message.seq
    for start in range(0, reach, PAGE):
        query = (
            select(journal.c.seq, journal.c.topic, journal.c.payload, journal.c.mid, journal.c.connection)
            # Written out, not bound: only then may SQLite use the partial index.
            .where(literal_column("qos > 0"), journal.c.source == message.source, journal.c.seq < before)
            .order_by(journal.c.seq.desc())
            .limit(min(PAGE, reach - start))
        )
        rows = connection.execute(query).all()
        for seq, topic, payload, mid, over in rows:
            yield seq, Mark(mid, _digest(topic.encode("utf-8", "surrogatepass"), payload)), over
        if len(rows) < PAGE:
            return
        before = rows[-1].seq


def mark(message: Message) -> Mark:
    return Mark(message.mid, _digest(message.topic.encode("utf-8", "surrogatepass"), message.payload))


@dataclass(slots=True)
class Redelivery:
    """Redelivery to one source. Messages go in by sequence; `begin` comes first for each new connection.

    After a transaction that did not commit, call `reset`: what was matched is not known to the store.
    """

    receive_maximum: int
    _connection: str | None = None
    _left: int = 0
    _near_from: int = 0
    _candidates: dict[Mark, int] = field(default_factory=dict)

    def knows(self, message: Message) -> bool:
        """Whether the message's connection was begun. Messages without one (QoS 0, files) need none."""
        return message.qos == 0 or message.connection == self._connection

    def reset(self) -> None:
        self._connection = None
        self._candidates.clear()
        self._left = 0

    def begin(self, connection: str, before: History) -> None:
        """A new connection, or one found again after a restart: its earlier messages took their matches
        then.
        """
        self._connection = connection
        self._left = self.receive_maximum - len(before.earlier)
        self._near_from = before.near_from
        self._candidates = dict(before.unconfirmed)
        for known in before.earlier:
            self._candidates.pop(known, None)

    def repeat_of(self, message: Message) -> Settlement | None:
        """How a redelivered message is settled; None for a new one."""
        if message.qos == 0 or not self._candidates:
            return None
        self._left -= 1
        if self._left < 0 and not message.duplicate:
            self._candidates = {}  # what comes again comes first
            return None
        known = mark(message)
        original = self._candidates.get(known)
        if original is None or (original < self._near_from and not message.duplicate):
            return None
        del self._candidates[known]
        return Settlement(EventId(message.seq, 0), Outcome.REPEAT, REDELIVERED, of=EventId(original, 0))


@dataclass(slots=True)
class Folded:
    """`repeats` are settled here; `fresh` are to be remembered, for lines that are none."""

    repeats: dict[EventId, Settlement] = field(default_factory=dict)
    fresh: list[SeenRow] = field(default_factory=list)


class Dated(NamedTuple):
    """A line with date and time, and what it is known again by."""

    line: LogLine
    digest: bytes


def dated(lines: Iterable[LogLine]) -> list[Dated]:
    """The lines that carry date and time; of those that do not, equal ones are many."""
    found = ((line, content_digest(line)) for line in lines)
    return [Dated(line, digest) for line, digest in found if digest is not None]


def content_digest(line: LogLine) -> bytes | None:
    """What a line is known again by; None for a line without date and time.

    It begins with the digits of that time, so that lines of one time lie side by side in the store. Digests
    without any order would dirty a page of the disk each: twenty times the bytes of the lines themselves.
    """
    stamp = numbers.date_time(line.text)
    if stamp is None:
        return None
    digits = stamp.encode("ascii", "ignore").translate(None, _NO_DIGITS)[:_TIME_DIGITS]
    parts = [part.encode("utf-8", "surrogatepass") for part in (line.source, line.topic, line.text)]
    return int(digits).to_bytes(_TIME_BYTES, "big") + _digest(*parts)[_TIME_BYTES:]


def fold(lines: Iterable[Dated], known: Mapping[bytes, EventId]) -> Folded:
    """Find lines that came before: in `known` (seen.find of their digests, within the window) or in this
    batch.

    Equal lines of one message are never one: the sender put them there twice.
    """
    out = Folded()
    first: dict[bytes, EventId] = {}
    for line, digest in lines:
        of = known.get(digest) or first.get(digest)
        if of is None:
            first[digest] = line.id
            out.fresh.append(SeenRow(digest, line.id, to_us(line.received_at)))
        elif of.seq != line.id.seq:
            out.repeats[line.id] = Settlement(line.id, Outcome.REPEAT, SAME_CONTENT, of=of)
    return out


def _digest(*parts: bytes) -> bytes:
    digest = hashlib.blake2b(digest_size=DIGEST_BYTES)
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()
