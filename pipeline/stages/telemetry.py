"""decode, third step: what a JSON document carries - readings, a message text, a state to be read as a line.

Shapes seen in the field: flat members, nested groups (`{"DHT11": {"Temperature": nan}}`), points
(`{"name": "temp", "value": 5, "unit": "C"}`), `{"ts": ..., "values": {...}}`, and arrays of each. A metric is
the path of names to the value, joined by dots, without names that only say "here come the values".
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from pipeline.stages import numbers
from pipeline.stages.payload import Bad, Node, Number, Obj, clean
from schemas.extraction import Null

# Names are compared without case, blanks, dashes and underscores.
TEXT_KEYS = frozenset(
    "message msg text log logmessage event eventtext description desc alarmtext alarmmessage "
    "errormessage errormsg errortext faulttext detail details reason remark note title body meldung "
    "nachricht beschreibung fehlertext 描述 消息 信息 内容 报警内容 报警信息 告警内容 告警信息 "
    "故障描述 说明".split()
)
TIME_KEYS = frozenset(
    "ts time timestamp @timestamp datetime date eventtime coltime tst createdat reportedat measuredat "
    "recordedat observedat sampletime devicetime zeitstempel zeit 时间 时间戳 采集时间 发生时间".split()
)
ASSET_KEYS = frozenset(
    "device deviceid devicename asset assetid assetname machine machineid machinename equipment "
    "equipmentid nodeid node unitid station stationid iedname plc robot controller maschine anlage "
    "设备 设备编号 设备名称 机台".split()
)
NAME_KEYS = frozenset(
    "name metric variablename variable tag tagname point pointname sensor parameter n 名称".split()
)
VALUE_KEYS = frozenset("value val v presentvalue wert 值 数值".split())
UNIT_KEYS = frozenset("unit units uom u einheit 单位".split())
QUALITY_KEYS = frozenset("quality qual q 质量".split())
CONTAINERS = frozenset(
    "metrics values value data payload body readings sensors fields measurements params telemetry "
    "history points print d iedparam state reported".split()
)
STATE_KEYS = frozenset(
    "alarm alarms alert alerts error errors errorcode fault faults faultcode warning warnings event "
    "code status state level severity priority mode gcodestate availability 状态 报警 故障 告警 级别".split()
)
ENVELOPE_KEYS = frozenset(
    "stream tag logtag offset file path input agent ecs @version time @timestamp".split()
)

# A number under such a name says that something is wrong when it is not zero.
_WRONG = re.compile(
    r"alarm|alert|fault|fail|err(?:or|$|_)|trip|emergency|warn|break(?!er)|disconnect|overload|leak|abnormal"
    r"|over.?(?:temp|heat|volt|curr)|stoerung|störung|fehler|故障|报警|告警|错误|跳闸|异常|过载|断线",
    re.IGNORECASE,
)
# Its number names something: batch_id, UniqueID. A whole word, so that grid and trip stay metrics.
_IDENTIFIES = re.compile(
    r"(?:^|[_\-. ]|(?<=[a-z0-9])(?=[A-Z]))(?i:id|uuid|guid|serial|mac|ip|port|version|seq|pid|crc)$"
)
_PLAIN = str.maketrans("", "", " -_")


@dataclass(frozen=True, slots=True)
class Measured:
    """A reading as found: not yet an event."""

    metric: str
    pointer: str
    number: numbers.Parsed
    asset: str | None
    unit: str | None
    quality: str | None
    time: str | None


@dataclass(slots=True)
class Found:
    """Everything a document carries. `speaks` when it should be read as a line too."""

    readings: list[Measured] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    times: list[str] = field(default_factory=list)
    asset: str | None = None
    speaks: bool = False
    last_will: bool = False


@dataclass(frozen=True, slots=True)
class _Here:
    """What is known where the walk stands: path of the metric, pointer, and what outer members say."""

    path: tuple[str, ...] = ()
    pointer: str = ""
    asset: str | None = None
    unit: str | None = None
    quality: str | None = None
    time: str | None = None

    def into(self, key: str, value: Node) -> _Here:
        container = isinstance(value, Obj | list) and plain(key) in CONTAINERS
        path = self.path if container else (*self.path, clean(key))
        return replace(self, path=path, pointer=f"{self.pointer}/{_escaped(key)}")


def plain(key: str) -> str:
    """A member's name as the key tables have it."""
    return key.translate(_PLAIN).lower()


def is_point(node: Obj) -> bool:
    """A value with its name: a part of what a document says, never a document of its own."""
    names = {plain(key) for key, _ in node.members}
    return not names.isdisjoint(NAME_KEYS) and not names.isdisjoint(VALUE_KEYS)


def search(document: Node, metric: str | None, pointer: str = "") -> Found:
    """Walk a parsed document. `metric` names a value that has no name of its own (from the topic); `pointer`
    is where in the payload the document stands."""
    found = Found()
    if isinstance(document, Obj):
        found.last_will = any(key == "_type" and value == "lwt" for key, value in document.members)
    _Walk(found, metric).node(document, _Here(pointer=pointer))
    return found


def dominant_text(document: Node) -> str | None:
    """The message of a document that is nothing but the envelope of one text line, else None."""
    if not isinstance(document, Obj):
        return None
    texts = [value for key, value in document.members if plain(key) in TEXT_KEYS and _is_words(value)]
    others = [key for key, value in document.members if not (plain(key) in TEXT_KEYS and _is_words(value))]
    if len(texts) != 1 or any(
        plain(key) not in ENVELOPE_KEYS and plain(key) not in ASSET_KEYS for key in others
    ):
        return None
    text = clean(str(texts[0])).strip("\r\n")
    timed = any(plain(key) in TIME_KEYS for key in others)
    return text if not timed or numbers.has_date_time(text) else None


class _Walk:
    def __init__(self, found: Found, metric: str | None) -> None:
        self._found = found
        self._metric = metric

    def node(self, node: Node, here: _Here) -> None:
        if isinstance(node, Obj):
            self._object(node, here)
        elif isinstance(node, list):
            self._array(node, here)
        else:
            self._scalar(node, here)

    def _array(self, items: list[Node], here: _Here) -> None:
        for index, item in enumerate(items):
            nested = isinstance(item, Obj | list)
            path = here.path if nested else (*here.path, str(index))
            self.node(item, replace(here, path=path, pointer=f"{here.pointer}/{index}"))

    def _object(self, node: Obj, here: _Here) -> None:
        here = self._context(node, here)
        point = any(plain(key) in VALUE_KEYS for key, _ in node.members)
        name = (
            next((v for k, v in node.members if plain(k) in NAME_KEYS and _is_words(v)), None)
            if point
            else None
        )
        if name is not None:
            here = replace(here, path=(*here.path, clean(str(name))))
        for key, value in node.members:
            self._member(key, value, here, point)

    def _context(self, node: Obj, here: _Here) -> _Here:
        """`here` with what this object says of all its values: time, asset (the first), unit, quality."""
        outer = here
        for key, value in node.members:
            name = plain(key)
            if isinstance(value, Obj | list | bool) or value is None or value == "":
                continue
            said = clean(str(value))
            if name in TIME_KEYS:
                here = replace(here, time=said)
                self._found.times.append(said)
            elif name in ASSET_KEYS:
                here = replace(here, asset=said if here.asset is outer.asset else here.asset)
                self._found.asset = self._found.asset or said
            elif name in UNIT_KEYS:
                here = replace(here, unit=said)
            elif name in QUALITY_KEYS:
                here = replace(here, quality=said)
        return here

    def _member(self, key: str, value: Node, here: _Here, point: bool) -> None:
        name = plain(key)
        inner = here.into(key, value)
        if isinstance(value, Obj | list):
            self._open(value, inner)
        elif name in TIME_KEYS or name in ASSET_KEYS or name in UNIT_KEYS or name in QUALITY_KEYS:
            return
        elif name in TEXT_KEYS and _is_words(value):
            self._found.texts.append(clean(str(value)))
            self._found.speaks = True
        elif point and name in VALUE_KEYS:
            path = here.path or ((self._metric,) if self._metric else (clean(key),))
            self._value(value, replace(inner, path=path))
        elif name not in NAME_KEYS:
            self._state(key, value)
            if not _IDENTIFIES.search(key):
                self._scalar(value, replace(inner, unit=None))
        elif isinstance(value, Number) and not point:
            self._scalar(value, replace(inner, unit=None))

    def _open(self, value: Obj | list[Node], here: _Here) -> None:
        # A unit and a quality belong to the point that states them, not to groups inside of it.
        self.node(value, replace(here, unit=None, quality=None))

    def _value(self, value: Node, here: _Here) -> None:
        """The value of a point: words that mean "no value" count as bad here, other words are a state."""
        self._state(here.path[-1], value)
        parsed = _parsed(value, value_expected=True)
        if parsed is not None:
            self._measured(parsed, here)
        elif not isinstance(value, bool):
            self._found.speaks = True

    def _scalar(self, value: Node, here: _Here) -> None:
        parsed = _parsed(value, value_expected=False)
        if parsed is not None:
            self._measured(parsed, here)

    def _measured(self, parsed: numbers.Parsed, here: _Here) -> None:
        metric = ".".join(here.path) or self._metric or "value"
        self._found.readings.append(
            Measured(metric, here.pointer, parsed, here.asset, here.unit, here.quality, here.time)
        )

    def _state(self, key: str, value: Node) -> None:
        """A member that says how things are makes the document worth reading as a line."""
        if self._found.speaks or value is None or value is False or isinstance(value, Bad):
            return
        if value is True:
            self._found.speaks = _WRONG.search(key) is not None
        elif isinstance(value, Number) or numbers.is_number(str(value)):
            self._found.speaks = _WRONG.search(key) is not None and float(str(value)) != 0
        elif value:
            self._found.speaks = (
                plain(key) in STATE_KEYS or _WRONG.search(key) is not None or _prose(str(value))
            )


def _parsed(value: Node, value_expected: bool) -> numbers.Parsed | None:
    if value is None:
        return numbers.Parsed(None, Null.ABSENT, "null")
    if isinstance(value, Bad):
        return numbers.Parsed(None, Null.BAD, str(value))
    if isinstance(value, Number):
        return numbers.of_number(str(value))
    if isinstance(value, str):
        return numbers.parse(clean(value), value_expected)
    return None


def _prose(text: str) -> bool:
    """More words than a name has."""
    return len(text.split()) > 3


def _is_words(value: Node) -> bool:
    return isinstance(value, str) and not isinstance(value, Number | Bad) and value.strip() != ""


def _escaped(key: str) -> str:
    return clean(key).replace("~", "~0").replace("/", "~1")
