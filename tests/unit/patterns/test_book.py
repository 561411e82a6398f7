"""The book: matching, teaching in step with the disk, people first, counts, eviction, threads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection

from pipeline.fields import Context, Labels, Profile
from pipeline.patterns import Book, Kept, Lesson, Match, Teaching, Trust, keep, study
from pipeline.store import patterns
from pipeline.store.engine import Store

LINE, OTHER = "Pump 3 stopped, error 17", "Pump 9 stopped, error 17"
ANOTHER_CODE = "Pump 9 stopped, error 18"

Lessons = Callable[..., Lesson]


@pytest.fixture
def lesson(profile: Profile, labels: Labels, reads: Callable[..., Any]) -> Lessons:
    def make(*lines: str, **given: Any) -> Lesson:
        found = study(lines or (LINE,), profile, labels, reads(device=lambda text: text.split(" stop")[0]))
        assert found is not None
        return replace(found, **given)

    return make


def teach(book: Book, lesson: Lesson, line: str = LINE, id: int = 7, version: int = 1) -> None:
    teaching = book.propose("p", line, lesson, 1000)
    assert teaching is not None
    book.commit(teaching, Kept(id, version))


def test_an_unknown_line_is_signed(lesson: Lessons) -> None:
    match = Book().match("p", LINE)
    assert match == Match(match.signature, "17", None, None)
    assert match.signature.text == "Pump <num> stopped, error <code>"


def test_what_is_taught_is_found_by_pattern_variant_and_profile(
    lesson: Lessons, profile: Profile, context: Context
) -> None:
    book = Book()
    teach(book, lesson())
    match = book.match("p", OTHER)
    assert match.pattern_id == 7 and match.taught is not None
    read = match.taught.plan.read(OTHER, match.signature, profile, context)
    assert read.fields["device"].span is not None and read.fields["device"].span.of(OTHER) == "Pump 9"
    assert match.taught.lesson.verdict(read).severity.label == "error"
    assert book.match("p", ANOTHER_CODE)[2:] == (7, None)  # never inherited from a neighbour
    assert book.match("q", OTHER)[2:] == (None, None)
    assert book.find("p", match.signature.text, "17") is match.taught
    assert book.find("p", match.signature.text, "18") is None


def test_nothing_is_known_before_the_commit_or_after_an_abort(lesson: Lessons) -> None:
    book = Book()
    first = book.propose("p", LINE, lesson(), 1)
    assert first is not None and book.still_valid(first)
    assert book.match("p", LINE).taught is None
    book.abort(first)
    assert not book.still_valid(first)
    assert book.match("p", LINE).taught is None
    again = book.propose("p", LINE, lesson(), 2)
    assert again is not None
    book.commit(again, Kept(7, 1))
    assert book.match("p", LINE).taught is not None


def test_one_reader_at_a_time_teaches_a_variant(lesson: Lessons) -> None:
    book = Book()
    assert book.propose("p", LINE, lesson(), 1) is not None
    assert book.propose("p", OTHER, lesson(), 1) is None
    assert book.propose("p", ANOTHER_CODE, lesson(), 1) is not None


def test_a_person_is_never_overwritten_by_a_reader(lesson: Lessons) -> None:
    book = Book()
    teach(book, lesson(taught_by="person:eva"))
    assert book.propose("p", LINE, lesson(), 2) is None
    assert book.propose("p", LINE, lesson(taught_by="person:max"), 2) is not None


def test_a_person_supersedes_the_reader_that_is_under_way(lesson: Lessons) -> None:
    book = Book()
    reader = book.propose("p", LINE, lesson(), 1)
    person = book.propose("p", LINE, lesson(taught_by="person:eva"), 1)
    assert reader is not None and person is not None
    assert not book.still_valid(reader) and book.still_valid(person)
    book.abort(reader)
    assert book.still_valid(person)
    book.commit(person, Kept(7, 1))
    found = book.match("p", LINE).taught
    assert found is not None and found.lesson.by_person


def test_the_later_version_stays_whatever_the_order_of_commits(lesson: Lessons) -> None:
    book = Book()
    reader = book.propose("p", LINE, lesson(), 1)
    person = book.propose("p", LINE, lesson(taught_by="person:eva"), 1)
    assert reader is not None and person is not None
    book.commit(person, Kept(7, 2))
    book.commit(reader, Kept(7, 1))
    found = book.match("p", LINE).taught
    assert found is not None and (found.version, found.lesson.by_person) == (2, True)


def test_more_trust_is_no_new_version(lesson: Lessons) -> None:
    book = Book()
    teach(book, lesson())
    teaching = book.propose("p", LINE, lesson(agreed=3, trust=Trust.TRUSTED), 2)
    assert teaching is not None and teaching.only_trust
    book.commit(teaching, Kept(7, 1))
    found = book.match("p", LINE).taught
    assert found is not None and (found.version, found.trust) == (1, Trust.TRUSTED)


def test_a_check_is_claimed_once_and_only_for_a_new_line_of_a_provisional_plan(lesson: Lessons) -> None:
    book = Book()
    assert not book.claim_check(book.match("p", LINE), LINE)
    teach(book, lesson())
    match = book.match("p", OTHER)
    assert not book.claim_check(book.match("p", LINE), LINE)
    assert book.claim_check(match, OTHER)
    assert not book.claim_check(match, OTHER)
    book.release_check(7, "17")
    assert book.claim_check(match, OTHER)
    trusted = book.propose("p", OTHER, lesson(agreed=3, trust=Trust.TRUSTED), 2)
    assert trusted is not None
    book.commit(trusted, Kept(7, 1))
    assert not book.claim_check(book.match("p", OTHER), OTHER)


def test_counts_are_drained_once_and_can_be_given_back(lesson: Lessons) -> None:
    book = Book()
    teach(book, lesson())
    book.count([book.match("p", OTHER)] * 3 + [book.match("p", "unknown")], 5000)
    book.count([book.match("p", LINE)], 4000)
    rows = book.drain_counts()
    assert rows == [patterns.Seen(7, "17", 4, 5000)]
    assert book.drain_counts() == []
    book.restore_counts(rows)
    book.count([book.match("p", LINE)], 6000)
    assert book.drain_counts() == [patterns.Seen(7, "17", 5, 6000)]
    entry = book.entry(7)
    assert entry is not None and (entry.n, entry.last_seen_us) == (5, 6000)


def test_forgetting_a_variant_or_a_pattern(lesson: Lessons) -> None:
    book = Book()
    teach(book, lesson())
    teach(book, lesson(ANOTHER_CODE), ANOTHER_CODE)
    book.forget(7, "17")
    assert book.match("p", LINE).taught is None
    assert book.match("p", ANOTHER_CODE).taught is not None
    book.forget(7)
    assert book.match("p", ANOTHER_CODE)[2:] == (None, None)
    assert len(book) == 0


def test_a_teaching_that_was_forgotten_on_its_way_does_not_come_back(lesson: Lessons) -> None:
    book = Book()
    teaching = book.propose("p", LINE, lesson(), 1)
    assert teaching is not None
    book.forget(7)
    book.commit(teaching, Kept(7, 1))
    assert book.match("p", LINE).taught is None


def test_the_least_recently_seen_go_first_and_never_what_people_taught(lesson: Lessons) -> None:
    book = Book(patterns_max=10)
    for n in range(10):
        word = "abcdefghij"[n]
        line = f"unit {word} stopped"
        given = {"taught_by": "person:eva"} if n == 0 else {}
        teaching = book.propose("p", line, lesson(line, **given), n)
        assert teaching is not None and teaching.evict == ()
        book.commit(teaching, Kept(n + 1, 1))
        book.count([book.match("p", line)], 100 - n if n else 0)
    teaching = book.propose("p", LINE, lesson(), 200)
    assert teaching is not None
    assert 1 not in teaching.evict and teaching.evict[0] == 10
    assert len(book) == 10
    book.commit(teaching, Kept(99, 1))
    assert book.entry(1) is not None
    assert len(book) <= 10


def test_the_store_gives_the_book_back(tmp_path: Path, lesson: Lessons) -> None:
    book = Book()
    with_store(tmp_path, lambda connection: _teach_through(connection, book, lesson()))
    reopened: list[Book] = []
    with_store(tmp_path, lambda connection: reopened.append(Book.load(patterns.load_all(connection))))
    before, after = book.match("p", OTHER), reopened[0].match("p", OTHER)
    assert before.taught is not None and after.taught is not None
    assert after.pattern_id == before.pattern_id
    assert after.taught.lesson == replace(before.taught.lesson, checked=frozenset())
    assert after.taught.version == 1


def test_teaching_again_keeps_the_id_and_raises_the_version(tmp_path: Path, lesson: Lessons) -> None:
    book = Book()

    def run(connection: Connection) -> None:
        first = _teach_through(connection, book, lesson())
        trust = _teach_through(connection, book, lesson(agreed=3, trust=Trust.TRUSTED))
        second = _teach_through(connection, book, lesson(taught_by="person:eva"))
        assert (first.pattern_id, trust.version, second) == (second.pattern_id, 1, Kept(first.pattern_id, 2))
        row = patterns.get(connection, first.pattern_id)
        assert row is not None and row.plans[0].taught_by == "person:eva"
        assert [old.version for old in patterns.history(connection, first.pattern_id)] == [1]

    with_store(tmp_path, run)


def test_a_superseded_teaching_writes_nothing(tmp_path: Path, lesson: Lessons) -> None:
    book = Book()

    def run(connection: Connection) -> None:
        reader = book.propose("p", LINE, lesson(), 1)
        person = book.propose("p", LINE, lesson(taught_by="person:eva"), 1)
        assert reader is not None and person is not None
        assert keep(connection, book, reader) is None
        assert patterns.count(connection) == 0
        assert keep(connection, book, person) == Kept(1, 1)

    with_store(tmp_path, run)


def test_eviction_drops_the_plans_on_disk_too(tmp_path: Path, lesson: Lessons) -> None:
    book = Book(patterns_max=1)

    def run(connection: Connection) -> None:
        first = _teach_through(connection, book, lesson("a stopped"), "a stopped")
        _teach_through(connection, book, lesson("b stopped"), "b stopped")
        assert [entry.signature for entry in book.entries()] == ["b stopped"]
        row = patterns.get(connection, first.pattern_id)
        assert row is not None and row.plans == ()
        assert len(Book.load(patterns.load_all(connection))) == 1

    with_store(tmp_path, run)


def test_readers_see_whole_lessons_while_others_teach(lesson: Lessons) -> None:
    """Matching takes no lock: a match is of one version, with its lesson, and versions never go back."""
    book, stop, wrong = Book(), threading.Event(), []
    made = [lesson(taught_by=f"model:{n}") for n in range(2)]
    teach(book, made[1], version=1)

    def match() -> None:
        last = 0
        while not stop.is_set():
            taught = book.match("p", OTHER).taught
            if (
                taught is None
                or taught.version < last
                or taught.lesson.taught_by != f"model:{taught.version % 2}"
            ):
                wrong.append(taught)
            last = taught.version if taught is not None else last
            book.count([book.match("p", LINE)], 1)

    threads = [threading.Thread(target=match) for _ in range(3)]
    for thread in threads:
        thread.start()
    for version in range(2, 400):
        teach(book, made[version % 2], version=version)
        book.drain_counts()
    stop.set()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_counting_on_many_threads_loses_nothing(lesson: Lessons) -> None:
    book = Book()
    teach(book, lesson())
    match = book.match("p", LINE)
    drained: list[int] = []

    def count() -> None:
        for _ in range(500):
            book.count([match, match], 1)
            drained.extend(row.n for row in book.drain_counts())

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(drained) == 4000


def _teach_through(connection: Connection, book: Book, lesson: Lesson, line: str = LINE) -> Kept:
    teaching: Teaching | None = book.propose("p", line, lesson, 1_700_000_000_000_000)
    assert teaching is not None
    kept = keep(connection, book, teaching)
    assert kept is not None
    book.commit(teaching, kept)
    return kept


def with_store(path: Path, run: Callable[[Connection], Any]) -> None:
    store = Store.open(path / "andon.db")
    try:
        store.write_sync(run)
    finally:
        store.close()
