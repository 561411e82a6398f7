"""Site file text to plain data with positions.

YAML 1.2 core schema over PyYAML's composer: `yes`, `on`, `12:30` and dates stay text; only true/false, null
and numbers are more than that. Tags are refused, so nothing can be executed; depth, size and the expansion of
aliases are bounded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, cast

import yaml
from yaml.composer import Composer
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.resolver import BaseResolver
from yaml.scanner import Scanner

from pipeline.config.document import Document, Finding, Path, Position
from pipeline.config.syntax import NO_TAGS, place, refused, syntax_error

DEPTH_MAX = 24  # the deepest key we define stands at level 7; an http body template may nest further
NODES_MAX = 100_000  # after expanding aliases; 5,000 rules need about 60,000
TEXT_MAX = 4_000_000  # characters; long code lists belong in a CSV file
NUMBER_CHARS_MAX = 64  # Python refuses to parse very long integers; nothing here needs one

_PREFIX = "tag:yaml.org,2002:"
_PLAIN_TAGS = frozenset(
    _PREFIX + name for name in ("str", "int", "float", "bool", "null", "map", "seq", "merge")
)
_SURROGATE = re.compile("[\ud800-\udfff]")


def compose(text: str, file: str) -> Document:
    """Raises ConfigError when the text is no YAML, no mapping, empty or too large; else findings."""
    if len(text) > TEXT_MAX:
        raise refused(file, Position(), f"the file is longer than {TEXT_MAX:,} characters")
    try:
        loader = _Loader(text)
    except yaml.YAMLError as error:
        raise syntax_error(file, text, error) from None
    node = _root(loader, text, file)
    if node is None or (isinstance(node, ScalarNode) and node.value == ""):
        raise refused(file, Position(), "the file is empty; start with 'sources:'")
    if not isinstance(node, MappingNode):
        found = "a list" if isinstance(node, SequenceNode) else "text"
        raise refused(file, place(node.start_mark), f"expected 'key: value' lines at the top, got {found}")
    document = Document(file=file)
    document.data = _Builder(document, loader.aliases).build(node, (), None)
    return document


def _root(loader: _Loader, text: str, file: str) -> Node | None:
    try:
        return loader.get_single_node()
    except yaml.YAMLError as error:
        raise syntax_error(file, text, error) from None
    except (ValueError, OverflowError):
        # PyYAML turns escapes and directives into numbers without looking at their size.
        position = place(loader.get_mark())
        raise refused(file, position, "not valid YAML: a number or escape that is out of range") from None


class _Loader(Reader, Scanner, Parser, Composer, BaseResolver):
    """PyYAML's pure Python chain down to nodes, and no constructor behind it.

    `aliases` says where a shared node is used, rather than defined.
    """

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 (PyYAML's way)

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)
        Composer.__init__(self)
        BaseResolver.__init__(self)
        self.depth = 0
        self.aliases: dict[tuple[int, int], Position] = {}

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
        if self.check_event(yaml.AliasEvent):
            self.aliases[_use(parent, index)] = place(mark)
        self.depth += 1
        if self.depth > DEPTH_MAX:
            problem = f"more than {DEPTH_MAX} levels of nesting"
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=mark)
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node


def _use(parent: Node | None, index: Any) -> tuple[int, int]:
    """Names the place of a node in its parent: the key node of a mapping, the number in a sequence."""
    return id(parent), index if isinstance(index, int) else id(index)


@dataclass(slots=True)
class _Builder:
    """Turns nodes into data, noting positions in the document."""

    document: Document
    aliases: dict[tuple[int, int], Position]
    nodes: int = 0

    def build(self, node: Node, path: Path, use: tuple[int, int] | None) -> Any:
        self._count(node, path)
        position = self.aliases.get(use) if use else None
        self.document.values[path] = position or place(node.start_mark)
        if node.tag not in _PLAIN_TAGS:
            return self._wrong(path, NO_TAGS)
        if isinstance(node, MappingNode):
            return self._mapping(node, path)
        if isinstance(node, SequenceNode):
            return [self.build(item, (*path, n), (id(node), n)) for n, item in enumerate(node.value)]
        return self._scalar(cast(ScalarNode, node), path)

    def _count(self, node: Node, path: Path, level: int = 0) -> None:
        self.nodes += 1
        if self.nodes > NODES_MAX or len(path) + level > DEPTH_MAX:
            what = f"more than {NODES_MAX:,} values" if self.nodes > NODES_MAX else "endless nesting"
            message = f"{what} once aliases (*name) are expanded"
            raise refused(self.document.file, place(node.start_mark), message)

    def _wrong(self, path: Path, message: str) -> None:
        self.document.broken.add(path)
        self.document.findings.append(Finding(path, message))

    def _wrong_at(self, node: Node, path: Path, message: str) -> None:
        """For places that the path cannot name, such as the second of two equal keys."""
        self.document.findings.append(Finding(path, message, position=place(node.start_mark)))

    def _mapping(self, node: MappingNode, path: Path) -> dict[str, Any]:
        data: dict[str, Any] = {}
        for key, value, owner in self._pairs(node, path):
            here = (*path, key.value)
            self.document.keys[here] = place(key.start_mark)
            data[key.value] = self.build(value, here, (id(owner), id(key)))
        return data

    def _pairs(
        self, node: MappingNode, path: Path, level: int = 0
    ) -> Iterator[tuple[ScalarNode, Node, MappingNode]]:
        """The mapping's own pairs, then those merged in (`<<: *base`) that it does not state itself."""
        own: dict[str, Node] = {}
        bases: list[MappingNode] = []
        for key, value in node.value:
            if key.tag == _PREFIX + "merge":
                bases.extend(self._bases(value, path))
            elif not isinstance(key, ScalarNode):
                self._wrong_at(key, path, "a key must be text")
            elif key.value in own:
                first = place(own[key.value].start_mark).line
                message = f"key '{key.value}' is given twice; first in line {first}"
                self._wrong_at(key, (*path, key.value), message)
            elif self._legible(key.value, path, key):
                own[key.value] = key
                yield key, value, node
        yield from self._merged(bases, path, level, set(own))

    def _merged(
        self, bases: list[MappingNode], path: Path, level: int, seen: set[str]
    ) -> Iterator[tuple[ScalarNode, Node, MappingNode]]:
        for base in bases:
            self._count(base, path, level)
            for key, value, owner in self._pairs(base, path, level + 1):
                self._count(key, path)
                if key.value not in seen:
                    seen.add(key.value)
                    yield key, value, owner

    def _bases(self, value: Node, path: Path) -> list[MappingNode]:
        nodes = value.value if isinstance(value, SequenceNode) else [value]
        for node in nodes:
            if not isinstance(node, MappingNode):
                self._wrong_at(node, (*path, "<<"), "'<<' merges mappings; this is none")
        return [node for node in nodes if isinstance(node, MappingNode)]

    def _legible(self, text: str, path: Path, node: Node) -> bool:
        if _SURROGATE.search(text):
            self._wrong_at(node, path, "half a surrogate pair is not text")
            return False
        return True

    def _scalar(self, node: ScalarNode, path: Path) -> Any:
        text: str = node.value
        if not self._legible(text, path, node):
            self.document.broken.add(path)
            return None
        self.document.written[path] = text
        kind = node.tag.removeprefix(_PREFIX)
        if kind in ("str", "merge") or len(text) > NUMBER_CHARS_MAX:
            return text
        try:
            value = _PARSERS[kind](text)
        except (ValueError, KeyError):
            return self._wrong(path, f"the tag !!{kind} does not fit its value")
        if isinstance(value, float) and not math.isfinite(value):
            return self._wrong(path, "infinity and nan mean nothing here; write a number")
        return value


def _null(text: str) -> None:
    if text.lower() not in ("", "~", "null"):
        raise ValueError


_PARSERS: dict[str, Any] = {
    "null": _null,
    "bool": lambda text: {"true": True, "false": False}[text.lower()],
    "int": lambda text: int(text, {"0x": 16, "0o": 8}.get(text[:2], 10)),
    "float": lambda text: float(re.sub(r"\.(?=inf|nan)", "", text.lower())),
}

# YAML 1.2.2, section 10.3.2 (core schema), and the merge key of 1.1 that everybody uses with anchors: the
# tag, the plain scalars that mean it, and the characters they start with. The first that matches is taken.
CORE_SCHEMA: tuple[tuple[str, str, list[str]], ...] = (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", list("-+0123456789")),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
    ("merge", r"<<", ["<"]),
)

for _tag, _pattern, _first in CORE_SCHEMA:
    _Loader.add_implicit_resolver(_PREFIX + _tag, re.compile(f"(?:{_pattern})\\Z"), _first)
