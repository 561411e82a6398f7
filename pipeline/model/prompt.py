"""The prompt: a head that every line of a profile shares, and a body for one line.

The head lists the profile's fields and the site's labels with their descriptions. The body is the line, its
times as `T`, then a row for each candidate and each decision that ends where an option's name would follow;
the logits of the names' first tokens are the answer. Nothing is generated.

    Fields:                                        T mixer 4: fault E207, oil 81.5 °C (max 80)
     device: device, the equipment                 [mixer 4]:        <- device? code? none?
     none: setpoint, limit, count ...              oil [81.5 °C]:    <- temperature? none?
    Severity: ...                                  severity:         <- info? warning? ...

The adapter is tuned on exactly this form (`pipeline.tune`): whoever changes it must tune anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from pipeline.fields import lexicon
from pipeline.fields.definition import FieldConfig, Labels, Profile
from schemas.errors import ModelOverflow
from schemas.extraction import Candidate, FieldType, Span

NONE = "none"
NONE_MEANS = "setpoint, limit, count, address, anything else"
# A line of more tokens than this is shown in windows around its candidates: a second or two of work a line at
# most.
LINE_TOKENS = 384
WINDOW_CHARS = 60  # on either side of a candidate
GAP = " … "
TIME = "T"
_SPARE = [
    *"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
]  # names of last resort, where all words of a label collide with another's

Tokens = Callable[[str], list[int]]


@dataclass(frozen=True, slots=True)
class Names:
    """Options of one question: the word that stands for each, and its first token, all different."""

    words: Mapping[str, str]
    tokens: Mapping[str, int]

    @classmethod
    def choose(cls, entries: Iterable[tuple[str, Sequence[str]]], tokens: Tokens) -> Names:
        """The first of each entry's words whose first token no earlier entry has."""
        words: dict[str, str] = {}
        firsts: dict[str, int] = {}
        for key, choices in entries:
            for word in [*choices, *_SPARE]:
                found = tokens(" " + word)
                if found and found[0] not in firsts.values():
                    words[key], firsts[key] = word, found[0]
                    break
            else:
                raise ModelOverflow(
                    f"more than {len(_SPARE)} labels have no first token of their own; shorten the list"
                )
        return cls(words, firsts)


@dataclass(frozen=True, slots=True)
class Ask:
    """One place of the body where an answer is read: for a candidate, or for a decision by its name."""

    position: int
    options: tuple[str, ...]
    candidate: Candidate | None = None
    decision: str = ""


@dataclass(frozen=True, slots=True)
class Body:
    """The tokens of one line's part, where its answers stand, and whether all of the line is in it."""

    tokens: tuple[int, ...]
    asks: tuple[Ask, ...]
    whole: bool


class Layout:
    """The prompt of one profile and one set of labels."""

    def __init__(self, profile: Profile, labels: Labels, tokens: Tokens) -> None:
        self._tokens = tokens
        self._fields = {name: c for name, c in profile.fields.items() if c.type is not FieldType.TIMESTAMP}
        entries = [(NONE, (NONE,)), *((name, _field_words(name, c)) for name, c in self._fields.items())]
        self.fields = Names.choose(entries, tokens)
        self.decisions = {
            question: Names.choose(
                ((label, _label_words(label, said)) for label, said in listed.items()), tokens
            )
            for question, listed in _questions(labels).items()
            if len(listed) > 1
        }
        self._labels = labels
        self.head = tuple(tokens(self._head()))

    # ---- head

    def _head(self) -> str:
        parts = [
            "Fields:",
            *(f" {self.fields.words[name]}: {_about(name, c)}" for name, c in self._fields.items()),
        ]
        parts.append(f" {NONE}: {NONE_MEANS}")
        for question, names in self.decisions.items():
            listed = _questions(self._labels)[question]
            parts.append(f"{question.capitalize()}:")
            parts.extend(f" {names.words[label]}: {_one_line(said)}" for label, said in listed.items())
        return "\n".join([*parts, "Line: "])

    # ---- body

    def body(self, text: str, rows: Mapping[Candidate, Sequence[str]], times: Sequence[Span] = ()) -> Body:
        """The part of one line: `rows` tells which fields each candidate may be asked for, `times` the spans
        shown as `T` (a stamp costs twenty tokens and tells the model nothing).
        """
        spans = [candidate.span for candidate in rows]
        shown = self._tokens(_shown(text, [Span(0, len(text))], times))
        whole = len(shown) <= LINE_TOKENS
        if not whole:
            shown = self._tokens(_shown(text, windows(text, spans), times))
        tokens, asks = list(shown), []
        for candidate, names in rows.items():
            tokens += self._tokens(f"\n{_before(text, candidate)}[{_written(text, candidate)}]:")
            asks.append(Ask(len(tokens) - 1, (NONE, *names), candidate=candidate))
        for question, options in self.decisions.items():
            tokens += self._tokens(f"\n{question}:")
            asks.append(Ask(len(tokens) - 1, tuple(options.words), decision=question))
        return Body(tuple(tokens), tuple(asks), whole)

    def option_tokens(self, ask: Ask) -> list[int]:
        names = self.decisions[ask.decision] if ask.decision else self.fields
        return [names.tokens[option] for option in ask.options]


def windows(text: str, spans: Sequence[Span]) -> list[Span]:
    """The line's beginning and what stands around each span, as spans that do not overlap."""
    pieces = [Span(0, min(len(text), 2 * WINDOW_CHARS))]
    for span in sorted(spans):
        start, end = max(0, span.start - WINDOW_CHARS), min(len(text), span.end + WINDOW_CHARS)
        if start <= pieces[-1].end:
            pieces[-1] = Span(pieces[-1].start, max(pieces[-1].end, end))
        else:
            pieces.append(Span(start, end))
    return pieces


def _shown(text: str, pieces: Sequence[Span], times: Sequence[Span]) -> str:
    """The pieces of the line with its times as `T`; gaps between pieces are shown as such."""
    return _one_line(GAP.join(_masked(text, piece, times) for piece in pieces))


def _masked(text: str, piece: Span, times: Sequence[Span]) -> str:
    kept, at = [], piece.start
    for span in sorted(times):
        if at <= span.start and span.end <= piece.end:
            kept += [text[at : span.start], TIME]
            at = span.end
    return "".join([*kept, text[at : piece.end]])


def _questions(labels: Labels) -> dict[str, dict[str, str]]:
    return {
        "severity": {severity.value: said for severity, said in labels.severities.items()},
        "category": labels.categories,
        "action": labels.actions,
    }


def _field_words(name: str, config: FieldConfig) -> list[str]:
    """A field's own words, the last first: in "inlet temperature" that is what it is."""
    return [*reversed(_words(name)), *_words(config.description)]


def _label_words(label: str, description: str) -> list[str]:
    """A label's own words, the first first: in "hardware_fault" that tells it from "sensor_fault"."""
    return [*_words(label), *_words(description)]


def _words(text: str) -> list[str]:
    return [word for word in re.split(r"[\W_]+", lexicon.plain(text)) if len(word) > 1]


def _about(name: str, config: FieldConfig) -> str:
    unit = f" ({config.unit})" if config.unit else ""
    choices = f" ({', '.join(config.choices)})" if config.choices else ""
    return f"{_one_line(name)}, {_one_line(config.description)}{unit}{choices}"


_LEFT = re.compile(r"(?:[^\W_]{1,12}[^\w\n]{0,3}|[^\w\n]{1,3})$")


def _before(text: str, candidate: Candidate) -> str:
    """The end of the word before a candidate, which tells two equal candidates apart."""
    start = candidate.span.start
    found = _LEFT.search(text[max(0, start - 15) : start])
    return _one_line(found.group(0)).lstrip() if found else ""


def _written(text: str, candidate: Candidate) -> str:
    after = text[candidate.span.end : candidate.span.end + 2]
    unit = candidate.unit or ""
    gap = " " if unit and after.startswith(" ") else ""
    return _one_line(candidate.span.of(text) + gap + unit)


def _one_line(text: str) -> str:
    """Line ends and other control characters as blanks: a log line cannot write rows of its own."""
    return re.sub(r"[\x00-\x1f\x7f\u0085\u2028\u2029]+", " ", text)
