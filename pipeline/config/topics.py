"""MQTT topic filters and templates: are they valid, do they fit together (MQTT 5.0, 4.7)."""

from __future__ import annotations

import re

TOPIC_BYTES_MAX = 65_535  # MQTT 5.0, 1.5.4: a string's length is a 16 bit number

NAMES = ("asset", "metric")


def filter_problem(text: str) -> str | None:
    """What is wrong with a topic filter; None when it is valid."""
    if not text:
        return "a topic filter must not be empty"
    if "\0" in text or len(text.encode()) > TOPIC_BYTES_MAX:
        return f"a topic filter has no NUL and at most {TOPIC_BYTES_MAX:,} bytes"
    if "{" in text or "}" in text:
        return "names in braces belong to topic_template; write + here"
    return _wildcards(_subscribed(text).split("/"))


def _subscribed(text: str) -> str:
    """The filter inside a shared subscription (`$share/group/filter`), else the filter itself."""
    shared = re.fullmatch(r"\$share/[^/+#]+/(.+)", text)
    return shared[1] if shared else text


def _wildcards(levels: list[str]) -> str | None:
    for level in levels:
        if "+" in level and level != "+":
            return f"+ stands for one whole level; '{level}' mixes it with text"
        if "#" in level and level != "#":
            return f"# stands for whole levels; '{level}' mixes it with text"
    if "#" in levels[:-1]:
        return "# stands for all the rest, so it comes last"
    return None


def template_problem(template: str) -> str | None:
    """What is wrong with a topic template by itself."""
    levels = template.split("/")
    names = []
    for level in levels:
        if "{" in level or "}" in level:
            if level.strip("{}") not in NAMES or level != "{" + level.strip("{}") + "}":
                return f"'{level}': a level is {{asset}}, {{metric}}, +, # or fixed text"
            names.append(level)
    if not names:
        return "names no level; write {asset} or {metric} in place of a + to use that level"
    if len(names) != len(set(names)):
        return f"{max(names, key=names.count)} stands there twice"
    return _wildcards(levels)


def mismatch(template: str, topic: str) -> str | None:
    """Why a (valid) template can never match what a (valid) filter receives; None when it can."""
    ours = ["+" if level.startswith("{") else level for level in template.split("/")]
    theirs = _subscribed(topic).split("/")
    for mine, other in zip(ours, theirs, strict=False):
        if "#" in (mine, other):
            break
        if mine != other and "+" not in (mine, other):
            return f"has '{mine}' where topic '{topic}' has '{other}'"
    if not _common_length(ours, theirs):
        return f"has {_count(ours)} levels, topic '{topic}' has {_count(theirs)}"
    return None


def overlap(one: str, other: str) -> bool:
    """Whether some topic matches both filters: the broker may then deliver its messages twice."""
    ours, theirs = _subscribed(one).split("/"), _subscribed(other).split("/")
    for mine, their in zip(ours, theirs, strict=False):
        if "#" in (mine, their):
            break
        if mine != their and "+" not in (mine, their):
            return False
    return _common_length(ours, theirs)


def _common_length(ours: list[str], theirs: list[str]) -> bool:
    """Whether topics of one length match both; # also matches no level at all (its parent)."""
    least = [len(levels) - (levels[-1] == "#") for levels in (ours, theirs)]
    most = [float("inf") if levels[-1] == "#" else len(levels) for levels in (ours, theirs)]
    return max(least) <= min(most)


def _count(levels: list[str]) -> str:
    return f"at least {len(levels) - 1}" if levels[-1] == "#" else str(len(levels))
