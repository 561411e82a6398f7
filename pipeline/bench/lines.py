"""Log lines of exactly LINE_BYTES bytes, of a dozen patterns: mostly routine, now and then a fault."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

LINE_BYTES = 200

# Numbers have a fixed width, so that the padding of a pattern is always the same and part of its text.
_ROUTINE = (
    "INFO press-{a} hydraulics: stroke {n:07} done, peak pressure {x:05.1f} bar, oil {y:04.1f} °C",
    "INFO press-{a} lubrication: point {b} served with {c} ml, level {y:04.1f} %",
    "INFO oven-{a} control: zone {b} at {x:05.1f} °C, setpoint 415.0 °C, output {y:04.1f} %",
    "INFO conveyor-{a} drive: belt speed {y:04.1f} m/min, motor current {z:04.2f} A, torque {c} %",
    "INFO robot-{a} motion: path P{c} finished in {z:04.2f} s, deviation 0.0{b} mm, part {n:07}",
    "INFO packer-{a} line: carton {n:07} sealed, weight {y:04.1f} kg, glue {x:05.1f} °C",
    "INFO chiller-{a} evaporator: suction {z:04.2f} bar, leaving water {y:04.1f} °C",
    "INFO agv-{a} fleet: route {c} driven in {x:05.1f} s, battery {y:04.1f} %",
    "INFO pump-{a} station: flow {x:05.1f} l/min, supply voltage {x:05.1f} V, vibration {z:04.2f} mm/s",
)
CODES = tuple(f"E{n}1{n}" for n in range(1, 10))
_WARNING = "WARNING chiller {a} filter: differential pressure {z:04.2f} bar close to its limit, clean it soon"
_ERROR = "ERROR pump-{a}: fault {code}, overload, motor current {y:04.1f} A, pump stopped"
_FAULT_EVERY = 50  # lines: one of them an error, another one a warning

_PADDING = (
    " | shift early, recipe standard, operator signed on, doors closed, guards in place, remote control, "
    "line in automatic mode"
)


def lines(count: int, begin: datetime, first: int = 0) -> Iterator[bytes]:
    """`count` lines, a millisecond apart from `begin` on; no two are equal for different `first`s in steps
    of `count`."""
    for number in range(first, first + count):
        at = (begin + timedelta(milliseconds=number)).astimezone(UTC)
        head = f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z "
        yield _padded(head + _said(number))


def _said(number: int) -> str:
    place = number % _FAULT_EVERY
    template = _ERROR if place == 17 else _WARNING if place == 33 else _ROUTINE[number % len(_ROUTINE)]
    return template.format(
        a=1 + number // 3 % 9,
        b=1 + number % 9,
        code=CODES[number % len(CODES)],
        c=10 + number % 89,
        n=number,
        x=100 + number * 7 % 800 / 2,
        y=10 + number * 3 % 890 / 10,
        z=1 + number % 89 / 10,
    )


def _padded(text: str) -> bytes:
    room = LINE_BYTES - len(text.encode())
    return (text + _PADDING[:room].ljust(room, ".")).encode()
