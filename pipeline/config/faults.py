"""pydantic's errors as findings: the right place in the file, and words that need no knowledge of it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from connectors.base import Secret
from pipeline.config.document import Document, Finding, Path
from pipeline.config.places import Fork, Place, fits, is_model, kind_of, locate, members_of, tag_of, tagged
from pipeline.config.site import NAME
from pipeline.config.words import SECRET, either, got, listed, nearest, quoted, unknown

SECRET_ELSEWHERE = "a secret never stands in the site file; use {file: /path} or {credential: name}"

_PATTERNS = {
    r"^[A-Za-z0-9][A-Za-z0-9_.-]*$": "an id of letters, digits, _ . - that starts with a letter or digit",
    NAME: "a name of at most 64 characters, without spaces and any of / \\ + # : , { } [ ] < > & \" ' |",
}


def findings(error: ValidationError, root: type[BaseModel], document: Document) -> Iterator[Finding]:
    """Every error of `error` once, without those that only follow from another."""
    faults = [
        _Fault(detail, locate(detail["loc"], root), document) for detail in error.errors(include_url=False)
    ]
    told: set[Path] = set()
    guesses = {(*fault.place.path[:-1], fault.guess) for fault in faults if fault.guess}
    for fault in faults:
        fork = fault.place.fork
        if fork is None or fits(fork.member, fault.at(fork.path)):
            if not (fault.kind == "missing" and fault.place.path in guesses):
                yield fault.finding()
        elif fork.path not in told and not any(fits(one, fault.at(fork.path)) for one in fork.members):
            told.add(fork.path)
            yield fault.no_member(fork)


class _Fault:
    """One of pydantic's errors, with its place."""

    def __init__(self, detail: ErrorDetails, place: Place, document: Document) -> None:
        self.kind = detail["type"]
        self.text = detail["msg"]
        self.context: dict[str, Any] = detail.get("ctx", {})
        self.place = place
        self.document = document
        self.value = detail["input"]
        self.hide = place.model is Secret or any(SECRET.search(str(part)) for part in place.path)

    def at(self, path: Path) -> Any:
        """What the file holds at `path`."""
        value: Any = self.document.data
        for part in path:
            value = value[part]
        return value

    @property
    def name(self) -> str:
        return str(self.place.path[-1]) if self.place.path else ""

    @property
    def guess(self) -> str | None:
        """The key that an unknown key was meant to be."""
        if self.kind != "extra_forbidden" or self.place.model is None:
            return None
        return nearest(self.name, self.place.model.model_fields)

    @property
    def got(self) -> str:
        return got(self.value, self.hide)

    def finding(self) -> Finding:
        if self.kind == "missing":
            return Finding(self.place.path[:-1], f"missing key '{self.name}'")
        if self.kind == "extra_forbidden":
            return self._unknown_key()
        if self.kind in ("union_tag_invalid", "union_tag_not_found"):
            return self._unknown_type()
        if self.kind == "value_error":
            return self._refused()
        return Finding(self.place.path, self._message(), at_key=self.place.at_key)

    def no_member(self, fork: Fork) -> Finding:
        """Nothing that a union allows fits what is there."""
        wanted = either([_expected(member) for member in fork.members])
        found = got(self.at(fork.path), self.hide)
        return Finding(fork.path, f"expected {wanted}, got {found}")

    def _unknown_key(self) -> Finding:
        model = cast("type[BaseModel]", self.place.model)
        if model is Secret:
            return Finding(self.place.path[:-1], "a secret is given as {file: /path} or {credential: name}")
        known = sorted(model.model_fields)
        hint = f"did you mean '{self.guess}'?" if self.guess else f"known here: {listed(known)}"
        return Finding(self.place.path, f"unknown key {quoted(self.name)}; {hint}", at_key=True)

    def _unknown_type(self) -> Finding:
        tags = [str(tag_of(member)) for member in members_of(self.place.expected)]
        if "type" not in self.value:
            return Finding(self.place.path, f"missing key 'type'; it is {either(tags)}")
        given, path = self.value["type"], (*self.place.path, "type")
        if not isinstance(given, str):
            return Finding(path, f"expected {either(tags)}, got {got(given)}")
        guess = nearest(given, tags)
        hint = f"; did you mean '{guess}'?" if guess else ""
        return Finding(path, f"unknown type {quoted(given)}; known: {', '.join(tags)}{hint}")

    def _refused(self) -> Finding:
        """A model's own check. Where its message begins with a key that was given, that key is meant."""
        message = str(self.context.get("error", self.text))
        first = message.partition(" ")[0].rstrip(":")
        here = (*self.place.path, first)
        return Finding(here if here in self.document.keys else self.place.path, message)

    def _message(self) -> str:
        if self.place.expected is Secret and not isinstance(self.value, dict):
            return SECRET_ELSEWHERE
        words = _WORDS.get(self.kind)
        if words is not None:
            return words(self)
        if self.kind.endswith(("_type", "_parsing", "_from_float")):
            hint = "; give it a value or remove the key" if self.value is None else _quotes(self)
            return f"expected {_expected(self.place.expected)}, got {self.got}{hint}"
        return self.text[:1].lower() + self.text[1:]


def _expected(annotation: Any) -> str:
    if annotation is Secret:
        return "{file: /path} or {credential: name}"
    needed = ["type"] if tagged(members_of(annotation)) else []
    if is_model(annotation):
        needed = [name for name, field in annotation.model_fields.items() if field.is_required()]
    if needed:
        return f"a mapping with {' and '.join(needed)}"
    kinds = {dict: "a mapping (key: value lines)", list: "a list", str: "text", bool: "true or false"}
    if annotation is int:
        return "a whole number"
    return kinds.get(kind_of(annotation), "a number" if kind_of(annotation) is float else "another value")


def _quotes(fault: _Fault) -> str:
    """How to write as text what YAML takes for something else (0012, true)."""
    written = fault.document.written.get(fault.place.path, "")
    wants_text = kind_of(fault.place.expected) is str or fault.kind in ("literal_error", "enum")
    if fault.hide or not wants_text or not isinstance(fault.value, bool | int | float) or not written:
        return ""
    return f'; to mean it as text write "{written}"'


def _one_of(fault: _Fault) -> str:
    """enum and literal errors; pydantic's `expected` reads `'a', 'b' or 'c'`, or `0 or 1`."""
    expected = str(fault.context.get("expected", ""))
    names = re.findall(r"'([^']*)'", expected) or re.split(r", | or ", expected)
    guess = nearest(fault.value, names) if isinstance(fault.value, str) else None
    if fault.place.at_key:
        return unknown("key", str(fault.place.path[-1]), names)
    hint = f"; did you mean '{guess}'?" if guess else ""
    written = fault.document.written.get(fault.place.path, "")
    return f"expected {either(names)}, got {fault.got}{hint}{_quotes(fault) if written in names else ''}"


def _pattern(fault: _Fault) -> str:
    pattern = str(fault.context.get("pattern", ""))
    words = _PATTERNS.get(pattern, f"text of the form {pattern}")
    return f"expected {words}, got {quoted(fault.name) if fault.place.at_key else fault.got}"


def _bound(words: str, name: str) -> Callable[[_Fault], str]:
    return lambda fault: f"must be {words} {_number(fault.context[name])}, got {fault.got}"


def _number(value: Any) -> str:
    return f"{int(value)}" if isinstance(value, float) and value.is_integer() else f"{value}"


def _length(fault: _Fault) -> str:
    """too_short, too_long and their string_ forms."""
    low, high = fault.context.get("min_length"), fault.context.get("max_length")
    unit = "characters" if fault.kind.startswith("string") else "items"
    if low == 1:
        return "must not be empty"
    limit = f"at least {low}" if low is not None else f"at most {high}"
    return f"needs {limit} {unit}, has {len(fault.value)}"


_WORDS: dict[str, Callable[[_Fault], str]] = {
    "enum": _one_of,
    "literal_error": _one_of,
    "string_pattern_mismatch": _pattern,
    "greater_than_equal": _bound("at least", "ge"),
    "greater_than": _bound("more than", "gt"),
    "less_than_equal": _bound("at most", "le"),
    "less_than": _bound("less than", "lt"),
    "too_short": _length,
    "too_long": _length,
    "string_too_short": _length,
    "string_too_long": _length,
}


def outside(found: Iterable[Finding], broken: set[Path]) -> list[Finding]:
    """Those findings that do not merely follow from a value that could not be read at all."""
    return [one for one in found if not any(one.path[: len(path)] == path for path in broken)]
