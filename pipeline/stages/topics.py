"""MQTT topic filters and topic templates, compiled once."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAMED = re.compile(r"\{(asset|metric)\}")


@dataclass(frozen=True, slots=True)
class Levels:
    """What a topic's levels name."""

    asset: str | None = None
    metric: str | None = None


def filter_pattern(topic_filter: str) -> re.Pattern[str]:
    """A regular expression for an MQTT filter (MQTT 5.0, 4.7): + is one level, # the rest and its parent."""
    return re.compile(_pattern(topic_filter))


def glob_pattern(glob: str) -> re.Pattern[str]:
    """Matches a name in which only * is special."""
    return re.compile(".*".join(re.escape(part) for part in glob.split("*")), re.DOTALL)


class TopicTemplate:
    """`plant/{asset}/+/{metric}`: names levels of topics that match. Raises ValueError on other names."""

    def __init__(self, template: str) -> None:
        levels = template.split("/")
        for level in levels:
            if ("{" in level or "}" in level) and not _NAMED.fullmatch(level):
                raise ValueError(f"{level!r}: a level is {{asset}}, {{metric}}, +, # or fixed text")
        self._pattern = re.compile(_pattern(template))

    def levels(self, topic: str) -> Levels:
        match = self._pattern.fullmatch(topic)
        if match is None:
            return Levels()
        named = match.groupdict()
        return Levels(named.get("asset") or None, named.get("metric") or None)


def _pattern(text: str) -> str:
    if text == "#":
        return ".*"
    rest = text.endswith("/#")
    levels = [_level(level) for level in (text[:-2] if rest else text).split("/")]
    return "/".join(levels) + ("(?:/.*)?" if rest else "")


def _level(level: str) -> str:
    if level == "+":
        return "[^/]*"
    named = _NAMED.fullmatch(level)
    return f"(?P<{named[1]}>[^/]*)" if named else re.escape(level)
