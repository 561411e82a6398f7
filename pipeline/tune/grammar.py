"""How a format file is written: layouts and messages with slots, checked when they are read.

    {temperature}      a value that counts, in one of its written forms
    {time} {level}     when it happened, and the word that says how bad it is (a fill level is {level %} or
    {level #}) {temperature kPa}  in that unit; `#` or `#kPa` without it, `raw` a sentinel number, `lost`
    nothing there to read {~temperature}     the same forms, but no value of its field: a limit, a setpoint,
    a count {@device}          the text of the slot `device` again
    {fault|trip}       one of these words
    {{ and }}          braces

The pools `devices`, `units`, `hosts` and `codes` use {d} (digit), {h} (hex digit), {a} (letter), repeated
for more of them, and {A|B}.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import yaml
from pydantic import Field

from connectors.base import Strict
from schemas.errors import AndonError
from schemas.extraction import Severity

FORMATS = Path(__file__).parent / "formats"
QUANTITIES = frozenset(
    "temperature pressure vibration current voltage speed torque frequency flow power humidity level weight "
    "energy position concentration".split()
)
VALUES = QUANTITIES | frozenset(
    "device unit host error_code user ip order product program duration count".split()
)
NOISE = frozenset(
    "number pid port ip version percent duration hex address file user time date uptime count id word mac "
    "url frame device unit host error_code order product program".split()
)
CATEGORIES = tuple(
    "hardware_fault sensor_fault network_issue software_bug process_alarm operator_action security "
    "other".split()
)
_SLOT = re.compile(r"\{\{|\}\}|\{([^{}]+)\}")
_KIND = re.compile(r"(~?)([a-z_]+)(?: (.+))?")


@dataclass(frozen=True, slots=True)
class Slot:
    """A hole of a text. `kind` is what goes in, `counts` whether it is a value, `form` a unit or `#`, `raw`,
    `lost`. `again` repeats an earlier slot; `words` offers words.
    """

    kind: str = ""
    counts: bool = True
    form: str = ""
    again: bool = False
    words: tuple[str, ...] = ()


class Message(Strict):
    text: str
    severity: Severity
    category: str


class Format(Strict):
    """One way in which a kind of system writes its lines."""

    name: str
    lines: list[str] = Field(min_length=1)
    time: list[str] = Field(default=["iso"])
    level: dict[Severity, list[str]] = Field(default_factory=dict)
    hosts: list[str] = Field(default_factory=list)
    units: list[str] = Field(default_factory=list)
    devices: list[str] = Field(default_factory=list)
    codes: list[str] = Field(default_factory=list)
    messages: list[Message] = Field(min_length=1)
    language: str = "en"


@lru_cache(maxsize=65536)
def parse(text: str) -> tuple[str | Slot, ...]:
    """The pieces of a text. Raises ValueError naming the slot that is not known."""
    return tuple(_pieces(text))


def _pieces(text: str) -> Iterator[str | Slot]:
    at = 0
    for found in _SLOT.finditer(text):
        if found.start() > at:
            yield text[at : found.start()]
        yield found.group(0)[0] if found.group(1) is None else _slot(found.group(1))
        at = found.end()
    if at < len(text):
        yield text[at:]


def _slot(written: str) -> Slot:
    if "|" in written:
        return Slot(words=tuple(written.split("|")))
    if written.startswith("@"):
        return Slot(kind=written[1:], again=True)
    found = _KIND.fullmatch("level" if written == "LEVEL" else written)
    kind, counts = (found.group(2), not found.group(1)) if found else ("", True)
    known = {"time", "level", "message"} | VALUES if counts else QUANTITIES | NOISE
    if found is None or kind not in known:
        raise ValueError(f"no slot {{{written}}}; write {{kind}}, {{~kind}}, {{@kind}} or {{a|b}}")
    return Slot(kind, counts, found.group(3) or "")


def load(folder: Path = FORMATS) -> list[Format]:
    """All formats of the folder, by file and place. Raises AndonError naming file, format and fault."""
    formats: list[Format] = []
    for path in sorted(folder.glob("*.yaml")):
        for number, entry in enumerate(yaml.load(path.read_text("utf-8"), yaml.CSafeLoader), 1):
            try:
                formats.append(checked(Format.model_validate(entry)))
            except (ValueError, TypeError) as error:
                name = entry.get("name", number) if isinstance(entry, dict) else number
                raise AndonError(f"{path.name}: {name}: {error}") from error
    names = [one.name for one in formats]
    if twice := {name for name in names if names.count(name) > 1}:
        raise AndonError(f"format names used twice: {', '.join(sorted(twice))}")
    return formats


def checked(one: Format) -> Format:
    """The format, after a look at every slot and category. Raises ValueError."""
    for text in [*one.lines, *(message.text for message in one.messages)]:
        parse(text)
    if not all(re.search(r"\{message\}", line) for line in one.lines):
        raise ValueError("every layout needs {message}")
    for message in one.messages:
        if message.category not in CATEGORIES:
            raise ValueError(f"category {message.category!r}; there are: {', '.join(CATEGORIES)}")
    return one
