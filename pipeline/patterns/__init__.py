"""The pattern book: what kind of line this is, where its fields stand, and what was decided about it."""

from pipeline.patterns.agree import READINGS
from pipeline.patterns.book import Book, Entry, Kept, Match, Teaching
from pipeline.patterns.keep import keep
from pipeline.patterns.learn import Reader, study
from pipeline.patterns.lesson import PERSON, Lesson, Taught, Trust
from pipeline.patterns.plan import FieldPlan, Plan, learn
from pipeline.patterns.share import SHARED
from pipeline.patterns.signature import Signature, Slot, sign, variant

__all__ = [
    "PERSON",
    "READINGS",
    "SHARED",
    "Book",
    "Entry",
    "FieldPlan",
    "Kept",
    "Lesson",
    "Match",
    "Plan",
    "Reader",
    "Signature",
    "Slot",
    "Taught",
    "Teaching",
    "Trust",
    "keep",
    "learn",
    "sign",
    "study",
    "variant",
]
