"""Units as they are written, what they measure, and the factors between them.

Conversion is linear, value * slope + offset, and both numbers are asked of pint once for each pair of units.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from pipeline.fields import lexicon

if TYPE_CHECKING:
    from pint import UnitRegistry


_WORD = re.compile(r"[^\W\d_]+")


@dataclass(frozen=True, slots=True)
class Unit:
    """`dimension` is what it measures, `pint` its name there."""

    dimension: str
    pint: str


@cache
def symbols() -> dict[str, Unit]:
    """Every symbol, as written. Where two quantities share one, the first in the file has it."""
    table: dict[str, Unit] = {}
    for dimension, units in lexicon.load("units").items():
        for name, written in units.items():
            for symbol in written:
                table.setdefault(symbol, Unit(dimension, name))
    return table


@cache
def _folded() -> dict[str, Unit]:
    """Symbols by their lower case, less those that then mean two things (mW, MW)."""
    table: dict[str, Unit] = {}
    clash: set[str] = set()
    for symbol, unit in symbols().items():
        known = table.setdefault(symbol.lower(), unit)
        if known != unit:
            clash.add(symbol.lower())
    return {symbol: unit for symbol, unit in table.items() if symbol not in clash}


@lru_cache(maxsize=4096)
def lookup(symbol: str) -> Unit | None:
    """The unit written so, first with its case, then without; None when it is unknown."""
    symbol = " ".join(symbol.split())
    return symbols().get(symbol) or _folded().get(symbol.lower())


@cache
def _suffixes() -> dict[str, str]:
    return {ending: symbol for symbol, endings in lexicon.load("suffixes").items() for ending in endings}


@lru_cache(maxsize=4096)
def of_key(key: str) -> str | None:
    """The unit that a key ends with (`temp_c`, `speedRpm`, `Temperature_Celsius`, `p [bar]`), or None.

    One word alone is a name (`C`, `bar`), so a suffix needs a word before it.
    """
    parts = lexicon.plain(key).replace("-", " ").replace(".", " ").replace("(", " ").replace("[", " ").split()
    for count in (2, 1):
        if len(parts) <= count:
            continue
        ending = " ".join(parts[-count:]).strip(")] ")
        if ending in _suffixes():
            return _suffixes()[ending]
        unit = lookup(ending) if len(ending) > 1 else None
        if unit is not None:
            return ending
    return None


@cache
def _registry() -> UnitRegistry[float]:
    from pint import UnitRegistry  # a third of a second: only when a unit must be converted

    registry: UnitRegistry[float] = UnitRegistry()
    registry.define(
        "milli_celsius = 1e-3 * kelvin; offset: 273.15"
    )  # pint puts no prefix on units with an offset
    return registry


@lru_cache(maxsize=1024)
def factors(symbol: str, target: str) -> tuple[float, float] | None:
    """(slope, offset) from the unit written `symbol` to `target`; None when they do not measure the same.

    `target` comes from the site file and may be any unit pint knows. `symbol` comes from a line: only units
    of the table are asked of pint, which would otherwise work out whatever a line says (9**9**9).
    """
    if symbol == target:
        return 1.0, 0.0
    have, want = lookup(symbol), lookup(target)
    if have is None:
        return None
    from pint.errors import PintError

    registry = _registry()
    try:
        source = registry.Unit(have.pint)
        aim = registry.Unit(want.pint if want else target)
        zero, hundred = (registry.Quantity(x, source).to(aim).magnitude for x in (0.0, 100.0))
    except (PintError, AttributeError, TypeError, ValueError, SyntaxError):
        return None
    return (hundred - zero) / 100.0, zero


def _is_name(word: str) -> bool:
    """Whether pint calls a unit so in full: furlong, kilojoules. With its abbreviations and prefixes almost
    any word is a unit: `cats` are centi technical atmospheres.
    """
    names = ["".join(parts) for parts in _registry().parse_unit_name(word)]
    return word in names or word.removesuffix("s") in names


@lru_cache(maxsize=1024)
def dimension(symbol: str) -> str | None:
    """What a unit of the site file measures, also for units that only pint knows by their full names, and for
    quotients and products of both; None when neither does.
    """
    unit = lookup(symbol)
    if unit is not None:
        return unit.dimension
    if not all(lookup(word) or _is_name(word) for word in _WORD.findall(symbol)):
        return None
    for known, unit in symbols().items():
        if unit.pint != "dimensionless" and factors(known, symbol) is not None:
            return unit.dimension
    return None
