"""Which fields and labels a line is asked for: never the same twice, so that names and descriptions are
read."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.fields.definition import FieldConfig, Labels, Profile
from pipeline.tune.grammar import CATEGORIES
from pipeline.tune.values import data
from schemas.extraction import FieldType, Severity

MAIN = ("device", "error_code", "temperature", "pressure", "vibration", "current", "voltage", "speed")
MAIN_SHARE, OTHER_SHARE = 0.75, 0.25  # how often a kind is asked for
LANGUAGES, LANGUAGE_WEIGHTS = ("en", "de", "zh"), (0.7, 0.17, 0.13)
UNIT_SHARE = 0.6  # of quantities that state the unit they are wanted in
ACTIONS_SHARE = 0.4  # of sites that want an action


@dataclass(frozen=True, slots=True)
class Schema:
    """A profile and labels, and what each of their names stands for."""

    profile: Profile
    labels: Labels
    fields: Mapping[str, str]
    """Kind by the field's name."""
    categories: Mapping[str, str]
    """The label by concept."""
    actions: Mapping[str, str]
    """The action by the concept of the category that it answers."""


def draw(chance: random.Random) -> Schema:
    """A random schema: some of the kinds, in random order, names, descriptions and languages."""
    kinds = [
        kind for kind in data("kinds") if chance.random() < (MAIN_SHARE if kind in MAIN else OTHER_SHARE)
    ] or ["device", "temperature"]
    chance.shuffle(kinds)
    language = chance.choices(LANGUAGES, LANGUAGE_WEIGHTS)[0]
    fields: dict[str, FieldConfig] = {}
    meant: dict[str, str] = {}
    for kind in kinds:
        name, config = _field(kind, language, chance)
        if name not in fields:
            fields[name], meant[name] = config, kind
    categories, about = _labels("categories", chance)
    actions, action_about = _labels("actions", chance) if chance.random() < ACTIONS_SHARE else ({}, {})
    labels = Labels(severities=_severities(chance), categories=about, actions=action_about)
    return Schema(Profile(fields=fields), labels, meant, categories, actions)


def _field(kind: str, language: str, chance: random.Random) -> tuple[str, FieldConfig]:
    entry = data("kinds")[kind]
    said = entry[language]
    unit = entry.get("unit") if chance.random() < UNIT_SHARE else None
    config = FieldConfig(type=FieldType(entry["type"]), description=chance.choice(said["about"]), unit=unit)
    return chance.choice(said["names"]), config


def _severities(chance: random.Random) -> dict[Severity, str]:
    return {severity: chance.choice(data("labels")["severities"][severity.value]) for severity in Severity}


def _labels(question: str, chance: random.Random) -> tuple[dict[str, str], dict[str, str]]:
    """The name by concept, and the description by name, in random order."""
    names: dict[str, str] = {}
    about: dict[str, str] = {}
    for concept in chance.sample(CATEGORIES, len(CATEGORIES)):
        entry = data("labels")[question][concept]
        name = chance.choice(entry["names"])
        names[concept], about[name] = name, chance.choice(entry["about"])
    return names, about


def own(profile: Profile, labels: Labels) -> Schema:
    """The schema of a site: its names stand for themselves, and for the kinds that have the same names."""
    return Schema(
        profile, labels, {name: name for name in profile.fields}, {one: one for one in labels.categories}, {}
    )
