"""Where a field stands is said by the words of a pattern, which are the same whatever its codes are: what a
person says of it for one variant holds for the others, and nobody is asked again for each code.

What a line means is not shared. Severity, category and action are decided for each variant by itself, and so
is what a number measures: `alarm 12: 93` may be a temperature where `alarm 13: 93` is a pressure.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pipeline.patterns.lesson import Lesson, Taught
from pipeline.patterns.plan import FieldPlan, Plan
from schemas.extraction import FieldType

# Fields that say which event it is, not what it means.
SHARED = frozenset({FieldType.ASSET, FieldType.CODE, FieldType.TIMESTAMP})


def share(variants: Mapping[str, Taught]) -> Mapping[str, Taught]:
    """The lessons of one pattern, each with what people said of the others. What was said of a variant itself
    stands, and what was said in two ways depends on the variant: it is not shared."""
    said = _said(variants.values())
    if not said:
        return variants
    return {values: replace(taught, lesson=_with(taught.lesson, said)) for values, taught in variants.items()}


def own(lesson: Lesson, known: Lesson | None, variants: Mapping[str, Taught]) -> Lesson:
    """The lesson without what it has from the others, for the store: a lesson that was changed may have begun
    as one of `share`. `known` is the one that it follows, as it is stored."""
    if known is None:
        return lesson
    said = _said(variants.values())
    before = {
        name: known.plan.fields[name]
        for name, how in lesson.plan.fields.items()
        if name in known.plan.fields and how is said.get(name)
    }
    if not before:
        return lesson
    unsure = sorted({*lesson.unsure, *(name for name in known.unsure if name in before)})
    return _having(lesson, {**lesson.plan.fields, **before}, unsure)


def _said(variants: Iterable[Taught]) -> dict[str, FieldPlan]:
    said: dict[str, FieldPlan] = {}
    disputed: set[str] = set()
    for lesson in (taught.lesson for taught in variants if taught.lesson.by_person):
        for name, how in lesson.plan.fields.items():
            if how.shared:
                other = said.setdefault(name, how)
                if (other.place, other.null, other.digest) != (how.place, how.null, how.digest):
                    disputed.add(name)
    return {name: how for name, how in said.items() if name not in disputed}


def _with(lesson: Lesson, said: Mapping[str, FieldPlan]) -> Lesson:
    fields = dict(lesson.plan.fields)
    for name, how in said.items():
        mine = fields.get(name)
        # Another digest is another definition of the field: what was said of the old one is out of date.
        if mine is None or (mine.digest == how.digest and not (lesson.by_person and mine.shared)):
            fields[name] = how
    return _having(lesson, fields, [name for name in lesson.unsure if name not in said])


def _having(lesson: Lesson, fields: Mapping[str, FieldPlan], unsure: Sequence[str]) -> Lesson:
    plan = Plan(fields, lesson.plan.slots, lesson.plan.reader)
    return replace(lesson, plan=plan, unsure=tuple(unsure))
