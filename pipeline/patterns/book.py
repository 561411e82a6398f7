"""The pattern book in memory: what is known of each pattern, found by one look-up.

Memory never runs ahead of the disk. Teaching takes three steps; the middle one is the caller's transaction:

    teaching = book.propose(...)             # nothing changes yet
    kept = keep(connection, book, teaching)  # in the writer's transaction; see keep.py
    book.commit(teaching, kept)              # after its commit; book.abort(teaching) after a failure

Who calls what: any thread may `match`. It takes no lock: what is taught is immutable and replaced as a whole,
so a line is read by the lesson before or the one after, never by half of one. Everything that changes the
book holds the lock for a moment, so the settle lane (counting), the read lane and people (teaching) may be on
different threads.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from threading import Lock
from typing import NamedTuple

from pipeline.patterns.lesson import Lesson, Taught, Trust
from pipeline.patterns.share import own, share
from pipeline.patterns.signature import Signature, line_digest, sign, variant
from pipeline.store.patterns import PatternRow, PlanRow, Seen

PATTERNS_MAX = 100_000
EVICTED_AT_ONCE = 64  # finding the least recently seen costs a look at all: not for each new pattern


class Match(NamedTuple):
    """What the book knows of a line. `pattern_id` and `taught` are None when nobody has read its kind yet."""

    signature: Signature
    variant: str
    pattern_id: int | None
    taught: Taught | None


@dataclass(slots=True)
class Entry:
    """One pattern. `variants` are its lessons as they were taught; it is replaced, never changed. `shared`
    are those that lines are read by: each with what people said of the others (share.py).
    """

    pattern_id: int
    profile: str
    signature: str
    variants: dict[str, Taught]
    n: int
    last_seen_us: int
    shared: Mapping[str, Taught] = field(init=False)

    def __post_init__(self) -> None:
        self.shared = share(self.variants)

    def teach(self, variants: dict[str, Taught]) -> None:
        self.variants, self.shared = variants, share(variants)

    @property
    def by_person(self) -> bool:
        return any(taught.lesson.by_person for taught in self.variants.values())


@dataclass(frozen=True, slots=True)
class Teaching:
    """One lesson on its way to the disk: `own` as it is written, `lesson` as lines will be read by it, with
    what people said of other variants. `sample` is the line it was learnt from.

    `only_trust`: the lesson stands and only its trust changes, at version `version`. `evict` are the patterns
    that make room.
    """

    ticket: int
    profile: str
    signature: str
    variant: str
    sample: str
    own: Lesson
    lesson: Lesson
    at_us: int
    pattern_id: int | None = None
    version: int = 0
    only_trust: bool = False
    evict: tuple[int, ...] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        return self.profile, self.signature, self.variant


class Kept(NamedTuple):
    """What the store gave a teaching."""

    pattern_id: int
    version: int


@dataclass(slots=True)
class Book:
    """See the module's text. `patterns_max` bounds the patterns kept, but what people taught is never evicted
    for it.
    """

    patterns_max: int = PATTERNS_MAX
    _entries: dict[str, dict[str, Entry]] = field(default_factory=dict)
    _by_id: dict[int, Entry] = field(default_factory=dict)
    _pending: dict[tuple[str, str, str], int] = field(default_factory=dict)
    _forgotten: dict[int, int] = field(default_factory=dict)
    _counts: dict[tuple[int, str], list[int]] = field(default_factory=dict)
    _checks: set[tuple[int, str]] = field(default_factory=set)
    _tickets: int = 0
    _lock: Lock = field(default_factory=Lock)

    @classmethod
    def load(cls, rows: Iterable[PatternRow], patterns_max: int = PATTERNS_MAX) -> Book:
        """The book as the store has it. Patterns without a plan are left out: their lines are read anew."""
        book = cls(patterns_max)
        for row in rows:
            variants = {plan.variant: _taught(plan) for plan in row.plans}
            if variants:
                book._add(Entry(row.id, row.profile, row.signature, variants, row.n, row.last_seen_us))
        return book

    def __len__(self) -> int:
        return len(self._by_id)

    def entries(self) -> Iterator[Entry]:
        """Every pattern, as it is now."""
        return iter(list(self._by_id.values()))

    def entry(self, pattern_id: int) -> Entry | None:
        return self._by_id.get(pattern_id)

    # --- reading --------------------------------------------------------------------------------------------

    def match(self, profile: str, text: str) -> Match:
        """What is known of a line. O(its length), whatever the number of patterns."""
        signature = sign(text)
        values = variant(text, signature)
        known = self._entries.get(profile)
        entry = known.get(signature.text) if known is not None else None
        if entry is None:
            return Match(signature, values, None, None)
        return Match(signature, values, entry.pattern_id, entry.shared.get(values))

    def find(self, profile: str, signature: str, values: str) -> Taught | None:
        """What is taught for a group of unread lines."""
        entry = self._entries.get(profile, {}).get(signature)
        return entry.shared.get(values) if entry is not None else None

    def siblings(self, teaching: Teaching, kept: Kept) -> Mapping[str, Taught]:
        """The lessons of the pattern's variants as they will be once the teaching is committed."""
        entry = self._by_id.get(kept.pattern_id)
        taught = Taught(teaching.own, kept.version, teaching.at_us)
        return share({**(entry.variants if entry is not None else {}), teaching.variant: taught})

    def claim_check(self, match: Match, text: str) -> bool:
        """Whether this line should be read once more, because its plan is provisional and has not been tried
        on it.

        True at most once until the answer is committed, aborted or released.
        """
        taught = match.taught
        if taught is None or match.pattern_id is None or taught.trust is not Trust.PROVISIONAL:
            return False
        if line_digest(text) in taught.lesson.checked:
            return False
        claim = match.pattern_id, match.variant
        with self._lock:
            if claim in self._checks:
                return False
            self._checks.add(claim)
            return True

    def release_check(self, pattern_id: int, values: str) -> None:
        """Give a claim back: the line was not read after all."""
        with self._lock:
            self._checks.discard((pattern_id, values))

    # --- counting -------------------------------------------------------------------------------------------

    def count(self, matches: Iterable[Match], at_us: int) -> None:
        """Lines that were settled by what the book knows; called after their batch's commit."""
        with self._lock:
            for match in matches:
                if match.pattern_id is not None and match.taught is not None:
                    self._bump(match.pattern_id, match.variant, 1, at_us)

    def drain_counts(self) -> list[Seen]:
        """The counts since the last call, for the store. Give them back with `restore_counts` if it fails."""
        with self._lock:
            counts, self._counts = self._counts, {}
        return [Seen(pattern_id, values, n, at_us) for (pattern_id, values), (n, at_us) in counts.items()]

    def restore_counts(self, rows: Iterable[Seen]) -> None:
        with self._lock:
            for row in rows:
                known = self._counts.setdefault((row.pattern_id, row.variant or ""), [0, 0])
                known[0] += row.n
                known[1] = max(known[1], row.last_seen_us)

    def _bump(self, pattern_id: int, values: str, n: int, at_us: int) -> None:
        known = self._counts.setdefault((pattern_id, values), [0, 0])
        known[0] += n
        known[1] = max(known[1], at_us)
        entry = self._by_id.get(pattern_id)
        if entry is not None:
            entry.n += n
            entry.last_seen_us = max(entry.last_seen_us, at_us)

    # --- teaching -------------------------------------------------------------------------------------------

    def propose(self, profile: str, sample: str, lesson: Lesson, at_us: int) -> Teaching | None:
        """Begin to teach the pattern and variant of `sample`. End it with `commit` or `abort`.

        None, for a lesson that is no person's: a person taught this pattern, or somebody is teaching it now.
        A person's proposal supersedes whatever is under way.
        """
        signature = sign(sample)
        key = profile, signature.text, variant(sample, signature)
        with self._lock:
            entry = self._entries.get(profile, {}).get(signature.text)
            known = entry.variants.get(key[2]) if entry is not None else None
            if not self._may_teach(key, known, lesson):
                return None
            self._tickets += 1
            self._pending[key] = self._tickets
            variants = entry.variants if entry is not None else {}
            written = own(lesson, known.lesson if known is not None else None, variants)
            return Teaching(
                self._tickets,
                *key,
                sample,
                written,
                share({**variants, key[2]: Taught(written, 0, at_us)})[key[2]].lesson,
                at_us,
                entry.pattern_id if entry is not None else None,
                known.version if known is not None else 0,
                known is not None and written.says_the_same(known.lesson),
                self._least_recent() if entry is None and len(self) >= self.patterns_max else (),
            )

    def still_valid(self, teaching: Teaching) -> bool:
        """Whether nothing has come before it since `propose`. Asked inside the transaction; False means:
        write nothing.
        """
        with self._lock:
            entry = self._by_id.get(teaching.pattern_id) if teaching.pattern_id is not None else None
            known = entry.variants.get(teaching.variant) if entry is not None else None
            version = known.version if known is not None else 0
            return self._pending.get(teaching.key) == teaching.ticket and version == teaching.version

    def commit(self, teaching: Teaching, kept: Kept) -> None:
        """The teaching is on disk: from now on lines are read by it. A later one that came first stays."""
        with self._lock:
            self._end(teaching)
            self._checks.discard((kept.pattern_id, teaching.variant))
            if teaching.ticket <= self._forgotten.get(kept.pattern_id, 0):
                return
            for pattern_id in teaching.evict:
                self._remove(pattern_id)
            entry = self._by_id.get(kept.pattern_id)
            if entry is None:
                entry = Entry(kept.pattern_id, teaching.profile, teaching.signature, {}, 0, teaching.at_us)
                self._add(entry)
            known = entry.variants.get(teaching.variant)
            if (
                known is None
                or known.version < kept.version
                or (teaching.only_trust and known.version == kept.version)
            ):
                taught = Taught(teaching.own, kept.version, teaching.at_us)
                entry.teach({**entry.variants, teaching.variant: taught})

    def abort(self, teaching: Teaching) -> None:
        """The teaching did not reach the disk; the book stays as it was."""
        with self._lock:
            self._end(teaching)
            if teaching.pattern_id is not None:
                self._checks.discard((teaching.pattern_id, teaching.variant))

    def forget(self, pattern_id: int, values: str | None = None) -> None:
        """Drop a pattern, or one variant of it, after the store has. Its next line is read anew."""
        with self._lock:
            self._forgotten[pattern_id] = self._tickets
            entry = self._by_id.get(pattern_id)
            if entry is None:
                return
            left = {} if values is None else {v: t for v, t in entry.variants.items() if v != values}
            entry.teach(left)
            if not left:
                self._remove(pattern_id)

    def _may_teach(self, key: tuple[str, str, str], known: Taught | None, lesson: Lesson) -> bool:
        if lesson.by_person:
            return True
        return key not in self._pending and not (known is not None and known.lesson.by_person)

    def _end(self, teaching: Teaching) -> None:
        if self._pending.get(teaching.key) == teaching.ticket:
            del self._pending[teaching.key]

    def _add(self, entry: Entry) -> None:
        self._entries.setdefault(entry.profile, {})[entry.signature] = entry
        self._by_id[entry.pattern_id] = entry

    def _remove(self, pattern_id: int) -> None:
        entry = self._by_id.pop(pattern_id, None)
        if entry is not None:
            del self._entries[entry.profile][entry.signature]

    def _least_recent(self) -> tuple[int, ...]:
        """The patterns that go first: longest not seen, and never taught by a person."""
        spare = len(self) - self.patterns_max + EVICTED_AT_ONCE
        taught = (entry for entry in self._by_id.values() if not entry.by_person)
        oldest = heapq.nsmallest(spare, taught, key=lambda entry: (entry.last_seen_us, entry.pattern_id))
        return tuple(entry.pattern_id for entry in oldest)


def _taught(row: PlanRow) -> Taught:
    lesson = Lesson.from_json(row.plan, row.verdict, row.trust, row.agreed, row.taught_by)
    return Taught(lesson, row.version, row.taught_at_us)
