"""From what a line means to the site's own labels: severity, category, action, and what it does to its alarm.

Nothing here names a label. A label is understood by its name and its one-line description.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from pipeline.fields import lexicon
from pipeline.fields.definition import Labels
from pipeline.model.meaning import Meaning, Term, concepts
from schemas.extraction import Choice, Severity, Tier, Transition

# One word of a place ("disk", "modbus") against a word that tells what happened (0.6-0.9): it settles ties
# and gives "failed" its category, and does not overrule. More than three such words tell no more.
HINT_WEIGHT = 0.2
HINTS_MAX = 3
# A word this strong makes a line of level info more than routine; weaker ones ("unknown", "slow") do not.
STRONG_TERM = 0.5
# A logger's WARNING knows that something failed; only a word this telling makes it an error.
TELLING_TERM = 0.6
# How often a decision with this evidence is right, measured on lines of our own
# (tests/acceptance/lines.jsonl).
SURE, FAIRLY_SURE, LIKELY, WEAK = 0.93, 0.85, 0.72, 0.55


@dataclass(frozen=True, slots=True)
class Opinion:
    """Severity and category with the weight behind each label, before anything is chosen for good."""

    severity: Choice
    category: Choice
    transition: Transition
    severity_weights: Mapping[Severity, float] = field(default_factory=dict)
    category_weights: Mapping[str, float] = field(default_factory=dict)


def opinion(meaning: Meaning, labels: Labels, *, sentinel: bool = False, coded: bool = False) -> Opinion:
    """What the words say. `sentinel`: a measured value reads -127 or the like. `coded`: an error code was
    found.
    """
    severity, confidence = _severity(meaning, sentinel=sentinel, coded=coded)
    weights = _category_weights(meaning, severity, sentinel=sentinel)
    return Opinion(
        severity=_configured(severity, confidence, labels),
        category=_category(weights, severity, labels),
        transition=_transition(meaning, severity),
        category_weights=weights,
    )


def _severity(meaning: Meaning, *, sentinel: bool, coded: bool) -> tuple[Severity, float]:
    level, terms = meaning.level, meaning.terms
    if meaning.ended:
        return Severity.INFO, FAIRLY_SURE
    if level is not None and level.severity is Severity.INFO:
        terms = tuple(term for term in terms if term.weight >= STRONG_TERM)
    if meaning.clear:
        terms = ()
    said, weight = _worst(terms)
    if said is Severity.INFO and sentinel:
        said, weight = Severity.ERROR, LIKELY
    if level is None:
        return _without_level(said, weight, clear=meaning.clear, coded=coded)
    bare = said is Severity.ERROR and level.severity is Severity.WARNING and weight < TELLING_TERM
    if said.rank <= level.severity.rank or bare:
        return level.severity, SURE
    return said, FAIRLY_SURE if weight >= 0.8 else WEAK


def _without_level(said: Severity, weight: float, *, clear: bool, coded: bool) -> tuple[Severity, float]:
    if said is not Severity.INFO:
        return said, LIKELY if weight >= 0.7 else WEAK
    if coded and not clear:
        return Severity.ERROR, WEAK
    return Severity.INFO, FAIRLY_SURE if clear else LIKELY


def _worst(terms: tuple[Term, ...]) -> tuple[Severity, float]:
    """The highest severity told. Where a word names what happened, the bare "error" or "failed" beside it
    adds nothing.
    """
    if not terms:
        return Severity.INFO, 0.0
    telling = [term for term in terms if term.concept is not None and term.severity is not Severity.INFO]
    worst = max(telling or terms, key=lambda term: (term.severity.rank, term.weight))
    return worst.severity, worst.weight


def nearest(severity: Severity, labels: Labels) -> Severity | None:
    """The severity, or the next higher one that the site has; None when it has none as high."""
    return min(
        (one for one in labels.severities if one.rank >= severity.rank),
        key=lambda one: one.rank,
        default=None,
    )


def _configured(severity: Severity, confidence: float, labels: Labels) -> Choice:
    known = nearest(severity, labels)
    return Choice(label=known.value, confidence=confidence, tier=Tier.RULE) if known is not None else Choice()


def _category_weights(meaning: Meaning, severity: Severity, *, sentinel: bool) -> dict[str, float]:
    weights: dict[str, float] = {}
    for term in meaning.terms:
        if term.concept is not None:
            weights[term.concept] = max(weights.get(term.concept, 0.0), term.weight) + 0.05
    for concept, count in meaning.hints.items():
        weights[concept] = weights.get(concept, 0.0) + HINT_WEIGHT * min(count, HINTS_MAX)
    if sentinel:
        weights["sensor_fault"] = weights.get("sensor_fault", 0.0) + 0.6
    happened = (
        severity is not Severity.INFO
        or meaning.clear
        or any(term.concept not in (None, "other") for term in meaning.terms)
    )
    if not happened:
        return {"other": 1.0}
    return weights


def _category(weights: Mapping[str, float], severity: Severity, labels: Labels) -> Choice:
    names = label_concepts(tuple(labels.categories.items()))
    ranked = sorted(
        ((weight, label) for label, concept in names.items() if (weight := weights.get(concept, 0.0)) > 0),
        key=lambda pair: -pair[0],
    )
    if not ranked:
        return Choice()
    (best, label), second = ranked[0], ranked[1][0] if len(ranked) > 1 else 0.0
    margin = (best - second) / best
    confidence = WEAK if margin < 0.25 else LIKELY if margin < 0.6 else FAIRLY_SURE
    return Choice(label=label, confidence=confidence, tier=Tier.RULE)


def _transition(meaning: Meaning, severity: Severity) -> Transition:
    if meaning.clear:
        return Transition.CLEAR
    return Transition.NONE if severity is Severity.INFO else Transition.RAISE


@lru_cache(maxsize=64)
def label_concepts(categories: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Which built-in concept each label stands for: the one most of whose words its name and description
    have.
    """
    found: dict[str, str] = {}
    for label, description in categories:
        if label in concepts():
            found[label] = label
            continue
        scores = {
            concept: 2 * len(expression.findall(lexicon.plain(label)))
            + len(expression.findall(lexicon.plain(description)))
            for concept, expression in concepts().items()
        }
        best = max(scores, key=lambda concept: scores[concept])
        if scores[best] > 0:
            found[label] = best
    return found


def choose_action(category: Choice, labels: Labels) -> Choice:
    """The one action whose description speaks of the category's concept; unsure where none or several do."""
    if category.label is None:
        return Choice()
    concept = label_concepts(tuple(labels.categories.items())).get(category.label)
    fitting = [
        name for name, means in label_concepts(tuple(labels.actions.items())).items() if means == concept
    ]
    if len(fitting) != 1:
        return Choice()
    return Choice(label=fitting[0], confidence=min(category.confidence, LIKELY), tier=Tier.RULE)
