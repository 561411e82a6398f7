"""What a person says of one code: where the names stand holds for all codes, what it means for that one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.fields import FieldConfig, Labels, Profile
from pipeline.patterns import Book, Kept, Lesson, Taught, Trust, keep, learn, sign, study
from pipeline.patterns.share import SHARED
from pipeline.store import patterns
from pipeline.store.engine import Store
from schemas.extraction import Choice, Extraction, FieldType, FieldValue, Null, Span, Tier, Verdict

Reads = Callable[..., Any]


def said(code: int) -> str:
    return f"Pump 3 stopped, error {code}"


LESSONS = {"device": "Pump 3", "error_code": "17", "temperature": "3"}


def span(text: str, word: str) -> Span:
    return Span(text.index(word), text.index(word) + len(word))


@pytest.fixture
def person(profile: Profile) -> Callable[..., Lesson]:
    """A person's lesson of a code; the words given stand for the fields."""

    def make(code: int, who: str = "ada", severity: str = "error", **words: str | None) -> Lesson:
        text = said(code)
        fields = {
            name: FieldValue(span(text, word), None) if word else FieldValue(None, Null.ABSENT)
            for name, word in words.items()
        }
        plan = learn(text, sign(text), Extraction(fields, f"person:{who}", Tier.PERSON), profile)
        assert plan is not None
        shared = {
            name: replace(plan.fields[name], shared=profile.fields[name].type in SHARED) for name in fields
        }
        plan = replace(plan, fields={**plan.fields, **shared}, _bound=[])
        choice = Choice(severity, 1.0, Tier.PERSON)
        return Lesson(plan, severity=choice, trust=Trust.TRUSTED, taught_by=f"person:{who}")

    return make


@pytest.fixture
def reader(profile: Profile, labels: Labels, reads: Reads) -> Callable[[int], Lesson]:
    """A reader's lesson of a code: it knows how severe it is and not where anything stands."""

    def make(code: int) -> Lesson:
        unsure = dict.fromkeys(profile.fields, FieldValue(None, Null.UNSURE, confidence=0.0))
        verdict = Verdict(Extraction(unsure, "m"), Choice("warning", 0.9))
        plan = learn(said(code), sign(said(code)), verdict.extraction, profile)
        assert plan is not None
        return Lesson(plan, severity=verdict.severity, taught_by="m", unsure=tuple(profile.fields))

    return make


class Shelf:
    """A book and the store it is written to."""

    def __init__(self, store: Store) -> None:
        self.store, self.book = store, Book()

    async def teach(self, lesson: Lesson, code: int) -> Lesson:
        teaching = self.book.propose("p", said(code), lesson, 1)
        assert teaching is not None
        kept = await self.store.write(lambda connection: keep(connection, self.book, teaching))
        assert kept is not None
        self.book.commit(teaching, kept)
        return teaching.lesson

    def taught(self, code: int) -> Lesson:
        found = self.book.match("p", said(code)).taught
        assert found is not None
        return found.lesson

    def reopened(self) -> Book:
        with self.store.read() as connection:
            return Book.load(patterns.load_all(connection))


@pytest.fixture
async def shelf(tmp_path: Path) -> Any:
    store = Store.open(tmp_path / "andon.db")
    yield Shelf(store)
    store.close()


def where(lesson: Lesson, name: str, code: int) -> str | None:
    text = said(code)
    found = lesson.plan.spans(text, sign(text)).get(name)
    return found.of(text) if found is not None else None


@pytest.mark.parametrize("first", [True, False], ids=["known before", "read afterwards"])
async def test_where_the_names_stand_holds_for_every_code(
    shelf: Shelf, person: Callable[..., Lesson], reader: Callable[[int], Lesson], first: bool
) -> None:
    if first:
        await shelf.teach(reader(18), 18)
    await shelf.teach(person(17, device="Pump 3", error_code="17", timestamp=None, temperature="3"), 17)
    by = shelf.taught(18) if first else await shelf.teach(reader(18), 18)
    for lesson in (by, shelf.taught(18), shelf.reopened().match("p", said(18)).taught.lesson):  # type: ignore[union-attr]
        assert (where(lesson, "device", 18), where(lesson, "error_code", 18)) == ("Pump 3", "18")
        assert lesson.plan.fields["timestamp"].null is Null.ABSENT
        assert lesson.plan.fields["temperature"].null is Null.UNSURE, "its meaning may hang on the code"
        assert lesson.severity.label == "warning", "and how bad it is does"
        assert set(lesson.unsure) == {"temperature", "pressure"}
        assert not lesson.by_person
    assert shelf.book.match("p", said(19)).taught is None, "a new code is read before anything is decided"


async def test_what_was_said_of_a_code_itself_stands(
    shelf: Shelf, person: Callable[..., Lesson], reader: Callable[[int], Lesson]
) -> None:
    await shelf.teach(person(17, device="Pump 3"), 17)
    await shelf.teach(person(18, device="Pump"), 18)
    assert where(shelf.taught(18), "device", 18) == "Pump"
    assert where(shelf.taught(17), "device", 17) == "Pump 3"
    await shelf.teach(reader(19), 19)
    assert where(shelf.taught(19), "device", 19) is None, "said in two ways: it depends on the code"


async def test_the_store_keeps_what_was_taught_of_each_code_and_no_more(
    shelf: Shelf, person: Callable[..., Lesson], reader: Callable[[int], Lesson]
) -> None:
    """So that what a person takes back is gone from all of them."""
    await shelf.teach(reader(18), 18)
    await shelf.teach(person(17, device="Pump 3"), 17)
    more = replace(shelf.taught(18), agreed=2)
    await shelf.teach(more, 18)
    await shelf.teach(replace(shelf.taught(18), severity=Choice("error", 1.0), taught_by="person:bob"), 18)
    assert where(shelf.taught(18), "device", 18) == "Pump 3"
    await shelf.teach(replace(person(17), severity=Choice("info", 1.0)), 17)
    for book in (shelf.book, shelf.reopened()):
        taught = book.match("p", said(18)).taught
        assert taught is not None and taught.lesson.plan.fields["device"].null is Null.UNSURE
        assert "device" in taught.lesson.unsure


async def test_what_was_said_of_another_definition_of_the_field_is_out_of_date(
    shelf: Shelf, person: Callable[..., Lesson], profile: Profile
) -> None:
    await shelf.teach(person(17, device="Pump 3"), 17)
    other = FieldConfig(type=FieldType.ASSET, description="the hall")
    renamed = Profile(fields={**profile.fields, "device": other})
    device = FieldValue(None, Null.UNSURE, confidence=0.0)
    plan = learn(said(18), sign(said(18)), Extraction({"device": device}, "m"), renamed)
    assert plan is not None
    await shelf.teach(Lesson(plan, taught_by="m"), 18)
    assert shelf.taught(18).plan.fields["device"].null is Null.UNSURE


async def test_readers_do_not_vote_on_what_a_person_said(
    shelf: Shelf,
    person: Callable[..., Lesson],
    reader: Callable[[int], Lesson],
    profile: Profile,
    labels: Labels,
) -> None:
    """A reader that takes the fault for the device: otherwise the pattern would be disputed."""
    await shelf.teach(person(17, device="Pump 3"), 17)
    await shelf.teach(reader(18), 18)

    class Stubborn:
        name = "m"

        def read(self, texts: Any, profile: Profile, labels: Labels) -> list[Verdict]:
            fields = [{"device": FieldValue(span(text, "stopped"), None, confidence=0.9)} for text in texts]
            return [Verdict(Extraction(one, "m"), Choice("warning", 0.9)) for one in fields]

    taught = Taught(shelf.taught(18), 1, 1)
    checked = study([said(18).replace("3", "4")], profile, labels, Stubborn(), taught)
    assert checked is not None and checked.trust is not Trust.DISPUTED
    assert where(checked, "device", 18) == "Pump 3"


def test_a_pattern_without_a_persons_word_is_as_it_was_taught(reader: Callable[[int], Lesson]) -> None:
    book = Book()
    teaching = book.propose("p", said(18), reader(18), 1)
    assert teaching is not None and teaching.own is not None
    book.commit(teaching, Kept(1, 1))
    (entry,) = book.entries()
    assert entry.shared is entry.variants
