"""The plant of plant.yaml as objects: machines, their lines with slots, faults, sensors.

All chance comes from integers of our own generator, so that a seed gives the same bytes on every platform and
in every Python version.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import Any

import yaml

_WORD = (1 << 64) - 1
_SLOT = re.compile(r"\{(int|dec|komma|seq|hex) ([^{} ]+)(?: ([^{} ]+))?\}")


class Dice:
    """splitmix64 (Steele, Lea, Flood 2014): one addition and a mix a throw, the same everywhere."""

    def __init__(self, seed: int) -> None:
        self._state = seed & _WORD

    def throw(self) -> int:
        self._state = (self._state + 0x9E3779B97F4A7C15) & _WORD
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _WORD
        return mixed ^ (mixed >> 31)

    def between(self, low: int, high: int) -> int:
        """A whole number from `low` to `high`, both included."""
        return low + self.throw() % (high - low + 1)


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

# How machines write the time. Most do not say in which zone.
CLOCKS: dict[str, Callable[[datetime], str]] = {
    "iso_blank_ms": lambda t: f"{t:%Y-%m-%d %H:%M:%S}.{t.microsecond // 1000:03}",
    "time_dmy": lambda t: f"{t:%H:%M:%S %d/%m/%Y}",
    "chinese": lambda t: f"{t.year}年{t.month:02}月{t.day:02}日 {t.hour:02}时{t.minute:02}分{t.second:02}秒",
    "german": lambda t: f"{t:%d.%m.%Y %H:%M:%S},{t.microsecond // 1000:03}",
    "epoch_ms": lambda t: str(int(t.timestamp()) * 1000 + t.microsecond // 1000),
    "time_only": lambda t: f"{t:%H:%M:%S}",
    "month_zulu": lambda t: f"{_MONTHS[_utc(t).month - 1]}-{_utc(t):%d %H:%M:%S}Z",
    "iso_offset": lambda t: t.isoformat(timespec="seconds"),
    "iso_zulu": lambda t: f"{_utc(t):%Y-%m-%dT%H:%M:%S}Z",
    "time_ms": lambda t: f"{t:%H:%M:%S}.{t.microsecond // 1000:03}",
    "none": lambda t: "",
}


def _utc(time: datetime) -> datetime:
    return time.astimezone(UTC)


# Running numbers by where they are written; they only ever go up.
Counters = dict[str, int]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A text with slots, split once: fixed parts between makers of values."""

    parts: tuple[str, ...]
    makers: tuple[Callable[[Dice, Counters], str], ...]

    def say(self, dice: Dice, counters: Counters) -> str:
        said = [self.parts[0]]
        for maker, fixed in zip(self.makers, self.parts[1:], strict=True):
            said += (maker(dice, counters), fixed)
        return "".join(said)


def sentence(text: str) -> Sentence:
    """`text` with its slots compiled."""
    pieces = _SLOT.split(text)
    slots = [tuple(pieces[at : at + 3]) for at in range(1, len(pieces), 4)]
    makers = tuple(_maker(kind, low, high, f"{text}#{n}") for n, (kind, low, high) in enumerate(slots))
    return Sentence(tuple(pieces[0::4]), makers)


def _maker(kind: str, low: str, high: str, place: str) -> Callable[[Dice, Counters], str]:
    if kind == "seq":
        return lambda dice, counters: str(_count(counters, place, int(low)))
    if kind == "hex":
        return lambda dice, counters: f"{dice.throw() % 16 ** int(low):0{low}x}"
    if kind == "int":
        return lambda dice, counters: str(dice.between(int(low), int(high)))
    return decimal(low, high)


def _count(counters: Counters, place: str, first: int) -> int:
    counters[place] = counters.get(place, first - 1) + 1
    return counters[place]


def decimal(low: str, high: str) -> Callable[[Dice, Counters], str]:
    """Numbers with as many decimals as the bounds are written with, and their decimal sign."""
    sign = "," if "," in low else "."
    digits = len(low.partition(sign)[2])
    bounds = [int(bound.replace(sign, "")) for bound in (low, high)]

    def make(dice: Dice, counters: Counters) -> str:
        number = f"{dice.between(*bounds):0{digits + 1}}"
        return f"{number[:-digits]}{sign}{number[-digits:]}"

    return make


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong at a machine: how it begins, goes on and ends."""

    name: str
    code: str
    severity: str
    begin: Sentence
    repeat: Sentence
    end: Sentence


@dataclass(frozen=True, slots=True)
class Sensor:
    """Readings of one metric. `alarm` makes the values while its fault lasts, where it can have one."""

    metric: str
    unit: str
    form: str
    every_ms: int
    normal: Callable[[Dice, Counters], str]
    alarm: Callable[[Dice, Counters], str] | None


@dataclass(frozen=True, slots=True)
class Machine:
    """One machine: `routine` repeats each sentence as often as it weighs."""

    name: str
    area: str
    layout: str
    clock: Callable[[datetime], str]
    levels: Mapping[str, str]
    encoding: str
    every_ms: int
    zones: int
    routine: tuple[tuple[str, Sentence], ...]
    faults: tuple[Fault, ...]
    sensors: tuple[Sensor, ...]


@dataclass(frozen=True, slots=True)
class Plant:
    """All machines, how often something breaks, and the payloads that no machine should send."""

    machines: tuple[Machine, ...]
    faults: Mapping[str, tuple[int, int]]
    broken_gap_ms: tuple[int, int]
    broken_topic: str
    broken: tuple[tuple[str, bytes], ...]

    def templates(self) -> frozenset[str]:
        """The id of every kind of line there is: what a perfect reader would come to know."""
        return frozenset(template for machine in self.machines for template in _templates(machine))


def _templates(machine: Machine) -> list[str]:
    routine = [f"{machine.name}/{name}" for name, _ in machine.routine]
    steps = ("begin", "repeat", "end")
    return routine + [f"{machine.name}/{fault.name}/{step}" for fault in machine.faults for step in steps]


@cache
def plant() -> Plant:
    """The plant of plant.yaml."""
    text = resources.files(__package__).joinpath("plant.yaml").read_text(encoding="utf-8")
    data = yaml.safe_load(text)
    broken = data["broken"]
    return Plant(
        machines=tuple(_machine(name, given) for name, given in data["machines"].items()),
        faults={key: (low, high) for key, (low, high) in data["faults"].items()},
        broken_gap_ms=tuple(broken["gap_ms"]),
        broken_topic=broken["topic"],
        broken=tuple((name, _payload(text)) for name, text in broken["payloads"]),
    )


def _machine(name: str, given: dict[str, Any]) -> Machine:
    weighed = [(key, sentence(text), weight) for weight, key, text in given["routine"]]
    return Machine(
        name=name,
        area=given.get("area", "plant"),
        layout=given["layout"],
        clock=CLOCKS[given["clock"]],
        levels=dict(zip(("info", "warning", "error", "critical"), given["levels"], strict=True)),
        encoding=given.get("encoding", "utf-8"),
        every_ms=given["every_ms"],
        zones=given.get("zones", 1),
        routine=tuple((key, text) for key, text, weight in weighed for _ in range(weight)),
        faults=tuple(_fault(key, fault) for key, fault in given.get("faults", {}).items()),
        sensors=tuple(_sensor(sensor) for sensor in given.get("sensors", [])),
    )


def _fault(name: str, given: dict[str, str]) -> Fault:
    texts = [sentence(given[step].replace("{code}", given["code"])) for step in ("begin", "repeat", "end")]
    return Fault(name, given["code"], given["severity"], *texts)


def _sensor(given: dict[str, Any]) -> Sensor:
    normal, alarm = given["normal"], given.get("alarm")
    return Sensor(
        given["metric"],
        given["unit"],
        given["form"],
        given["every_ms"],
        decimal(*normal),
        decimal(*alarm) if alarm else None,
    )


def _payload(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("hex:")) if text.startswith("hex:") else text.encode()
