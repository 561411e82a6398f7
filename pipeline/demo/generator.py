"""Plays the plant: a stream of messages with the truth about each, as long as one likes, the same for a seed.

Mostly routine; faults begin, repeat and end; sensors report; now and then comes what no machine should send.
`python -m pipeline.demo.generator` writes the bundled sample anew.
"""

from __future__ import annotations

import argparse
import base64
import heapq
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone
from importlib import resources
from pathlib import Path
from typing import Literal

from pipeline.demo.plant import Dice, Fault, Machine, Plant, Sensor, plant

SEED = 20260302
SAMPLE_LINES = 2000  # a minute and a half of the plant's life; about 250 KB

# A Monday morning in winter: no change of the clocks for four weeks of play.
START = datetime(2026, 3, 2, 6, 14, 7, tzinfo=timezone(timedelta(hours=1)))


Phase = Literal["begin", "repeat", "end"]


@dataclass(frozen=True, slots=True)
class Item:
    """One message, `at_offset_s` seconds after the stream's start, and the truth about it.

    `template` names the kind of line; lines of one template differ in their values only. `severity` is what a
    perfect reader would decide, None for broken payloads. `episode` numbers the fault it belongs to, `step`
    says what it is in it, `code` is that fault's.
    """

    topic: str
    payload: bytes
    at_offset_s: float
    kind: Literal["line", "reading", "broken"] = "line"
    template: str = ""
    severity: str | None = "info"
    episode: int | None = None
    step: Phase | None = None
    code: str | None = None


def generate(seed: int, lines: int) -> Iterator[Item]:
    """The first `lines` messages of the plant's stream for `seed`, in the order of their time."""
    return _Play(plant(), seed).items(lines)


def known_templates() -> frozenset[str]:
    """The templates of all lines that `generate` can make; readings and broken payloads have others."""
    return plant().templates()


# What came of a step: an item or none, and the mean wait in milliseconds until the next, None after the last.
Happening = tuple[Item | None, int | None]
Step = Callable[[int], Happening]


class _Play:
    """One run of the plant: a heap of what happens when."""

    def __init__(self, plant: Plant, seed: int) -> None:
        self._plant = plant
        self._dice = Dice(seed)
        self._counters: dict[str, int] = {}
        self._heap: list[tuple[int, int, Step]] = []
        self._order = 0
        self._episodes = 0
        self._troubled: set[str] = set()
        self._alarms: dict[str, tuple[int, int]] = {}
        for machine in plant.machines:
            self._after(0, machine.every_ms, self._routine(machine))
            for sensor in machine.sensors:
                self._after(0, sensor.every_ms, self._sensor(machine, sensor))
        self._after(0, plant.faults["gap_ms"][0], self._trouble)
        self._after(0, plant.broken_gap_ms[0], self._broken)

    def items(self, count: int) -> Iterator[Item]:
        while count > 0:
            now, _, step = heapq.heappop(self._heap)
            item, wait = step(now)
            if wait is not None:
                self._after(now, wait, step)
            if item is not None:
                count -= 1
                yield item

    def _after(self, now: int, mean_ms: int, step: Step) -> None:
        """Within a third around the mean; equal times keep the order in which they were planned."""
        self._order += 1
        wait = self._dice.between(2 * mean_ms // 3, 4 * mean_ms // 3)
        heapq.heappush(self._heap, (now + wait, self._order, step))

    def _routine(self, machine: Machine) -> Step:
        def step(now: int) -> Happening:
            name, sentence = machine.routine[self._dice.between(0, len(machine.routine) - 1)]
            text = sentence.say(self._dice, self._counters)
            return self._line(machine, now, text, f"{machine.name}/{name}", "info"), machine.every_ms

        return step

    def _sensor(self, machine: Machine, sensor: Sensor) -> Step:
        """`_alarms` says which sensors are in trouble, until when, and in which episode."""
        place = f"{machine.name}/{sensor.metric}"

        def step(now: int) -> Happening:
            until, episode = self._alarms.get(place, (0, None))
            troubled = now < until and sensor.alarm is not None
            make = sensor.alarm if troubled and sensor.alarm is not None else sensor.normal
            payload = _reading(sensor, make(self._dice, self._counters), now)
            topic = f"{machine.area}/{machine.name}/sensor/{sensor.metric}"
            severity = "error" if troubled else "info"
            item = Item(topic, payload, now / 1000, "reading", place, severity, episode if troubled else None)
            return item, sensor.every_ms

        return step

    def _trouble(self, now: int) -> Happening:
        """Something breaks at a machine that is well; the machine then goes through its episode."""
        wait = self._dice.between(*self._plant.faults["gap_ms"])
        well = [one for one in self._plant.machines if one.name not in self._troubled and one.faults]
        if not well:
            return None, wait
        machine = well[self._dice.between(0, len(well) - 1)]
        until = now + self._dice.between(*self._plant.faults["lasts_ms"])
        self._episodes += 1
        self._troubled.add(machine.name)
        alarming = [sensor for sensor in machine.sensors if sensor.alarm is not None]
        chosen = self._dice.between(0, len(machine.faults) + len(alarming) - 1)
        if chosen < len(machine.faults):
            self._after(now, 0, self._fault(machine, machine.faults[chosen], self._episodes, until))
        else:
            place = f"{machine.name}/{alarming[chosen - len(machine.faults)].metric}"
            self._alarms[place] = (until, self._episodes)
            self._after(until, 0, self._recovery(machine))
        return None, wait

    def _fault(self, machine: Machine, fault: Fault, episode: int, until: int) -> Step:
        begun = False

        def step(now: int) -> Happening:
            nonlocal begun
            name: Phase = "begin" if not begun else "repeat" if now < until else "end"
            begun = True
            sentence = {"begin": fault.begin, "repeat": fault.repeat, "end": fault.end}[name]
            text = sentence.say(self._dice, self._counters)
            severity = "info" if name == "end" else fault.severity
            line = self._line(machine, now, text, f"{machine.name}/{fault.name}/{name}", severity)
            item = replace(line, episode=episode, step=name, code=fault.code)
            if name == "end":
                self._troubled.discard(machine.name)
                return item, None
            return item, self._dice.between(*self._plant.faults["repeat_ms"])

        return step

    def _recovery(self, machine: Machine) -> Step:
        def step(now: int) -> Happening:
            self._troubled.discard(machine.name)
            return None, None

        return step

    def _broken(self, now: int) -> Happening:
        name, payload = self._plant.broken[self._dice.between(0, len(self._plant.broken) - 1)]
        item = Item(self._plant.broken_topic, payload, now / 1000, "broken", f"broken/{name}", None)
        return item, self._dice.between(*self._plant.broken_gap_ms)

    def _line(self, machine: Machine, now: int, text: str, template: str, severity: str) -> Item:
        said = (
            machine.layout.replace("{time}", machine.clock(_clock(now)))
            .replace("{level}", machine.levels[severity])
            .replace("{zone}", str(self._dice.between(1, machine.zones)))
            .replace("{text}", text)
        )
        payload = said.encode(machine.encoding)
        return Item(f"{machine.area}/{machine.name}/log", payload, now / 1000, "line", template, severity)


def _clock(now: int) -> datetime:
    return START + timedelta(milliseconds=now)


def _reading(sensor: Sensor, value: str, now: int) -> bytes:
    """A sensor's payload; written by hand, so that the value keeps its decimals."""
    if sensor.form == "bare":
        return value.encode()
    if sensor.form == "group":
        return f'{{"{sensor.metric}": {value}, "door_open": 0}}'.encode()
    time = _clock(now).astimezone(UTC)
    stamp = f"{time:%Y-%m-%dT%H:%M:%S}.{time.microsecond // 1000:03}Z"
    return f'{{"value": {value}, "unit": "{sensor.unit}", "ts": "{stamp}"}}'.encode()


def sample() -> Iterator[Item]:
    """The bundled sample as messages alone: topic, payload and time, as a stream that was once recorded."""
    text = resources.files(__package__).joinpath("streams/sample.jsonl").read_text(encoding="utf-8")
    for line in text.splitlines():
        row = json.loads(line)
        payload = row["text"].encode() if "text" in row else base64.b64decode(row["base64"])
        yield Item(row["topic"], payload, row["t"])


def written(items: Iterable[Item]) -> Iterator[str]:
    """Items as lines of a recorded stream. Payloads that are no UTF-8 are written in base64."""
    for item in items:
        row: dict[str, object] = {"t": item.at_offset_s, "topic": item.topic}
        try:
            row["text"] = item.payload.decode("utf-8")
        except UnicodeDecodeError:
            row["base64"] = base64.b64encode(item.payload).decode("ascii")
        yield json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n"


def main() -> None:
    """Writes a recorded stream, by default the bundled sample."""
    parser = argparse.ArgumentParser(description="Write a recorded stream of the demo's plant.")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--lines", type=int, default=SAMPLE_LINES)
    parser.add_argument("file", type=Path, nargs="?", default=Path(__file__).parent / "streams/sample.jsonl")
    given = parser.parse_args()
    with given.file.open("w", encoding="utf-8", newline="\n") as out:
        out.writelines(written(generate(given.seed, given.lines)))


if __name__ == "__main__":
    main()
