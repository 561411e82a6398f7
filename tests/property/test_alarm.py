"""The alarm stage against a plain model of its rules: any order, any batches, restarts and rollbacks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from making import Plant, change, line

from pipeline.stages.facts import Facts
from pipeline.store.tables import events, openings, reviews
from pipeline.store.tables import outbox as outbox_table
from schemas.extraction import Severity

RAISE, CLEAR = "raise", "clear"
# One for all examples: making the tables takes longer than an example.
PLANT = Plant()
SCOPE = ""  # component of a return that counts for all


@dataclass
class Span:
    """One opening: the positions of its faults, and where it ends."""

    faults: list[int]
    cleared: int | None = None

    def holds(self, position: int) -> bool:
        return self.faults[0] <= position and (self.cleared is None or position < self.cleared)


@dataclass
class Model:
    """The rules of DESIGN §3 in the plainest way: lists, one event at a time."""

    spans: dict[str, list[Span]] = field(default_factory=dict)
    last_clear: dict[str, int] = field(default_factory=dict)
    asked: set[int] = field(default_factory=set)

    def fault(self, component: str, position: int) -> None:
        spans = self.spans.setdefault(component, [])
        for span in spans:
            if span.holds(position):
                span.faults = sorted([*span.faults, position])
                return
        clears = [span.cleared for span in spans if span.cleared is not None]
        clears += [self.last_clear[key] for key in {component} & set(self.last_clear)]
        waiting = self._waiting(component)
        clears += [waiting] if waiting is not None else []
        ends = min((clear for clear in clears if clear > position), default=None)
        later = [span for span in spans if span.faults[0] > position]
        if later and (ends is None or ends > later[0].faults[0]):
            later[0].faults.insert(0, position)
        else:
            spans.append(Span([position], ends))
            if ends is not None and ends == waiting:
                del self.last_clear[SCOPE]
                self._remember(component, ends)
        spans.sort(key=lambda span: span.faults[0])

    def _waiting(self, component: str) -> int | None:
        """A return that names no component and has ended nothing yet."""
        last = self.last_clear.get(SCOPE) if component != SCOPE else None
        return None if any(span.cleared == last for span in self.spans.get(SCOPE, [])) else last

    def clear(self, component: str, position: int) -> None:
        own = [component] if self._is_held(component, position) else []
        others = [key for key in self.spans if key != component and self._is_open(key, position)]
        if component == SCOPE:
            ended = own + others
        elif own or SCOPE not in others or self.spans.get(component):
            ended = own
        else:
            ended = others
        if len(ended) > 1:
            self.asked.add(position)
            return
        for key in ended:
            self._end(key, position)
        self._remember(ended[0] if ended else component, position)

    def _remember(self, component: str, position: int) -> None:
        self.last_clear[component] = max(position, self.last_clear.get(component, position))

    def _is_held(self, component: str, position: int) -> bool:
        spans = self.spans.get(component, [])
        return any(span.holds(position) and span.faults[0] < position for span in spans)

    def _is_open(self, component: str, position: int) -> bool:
        return self._is_held(component, position) and any(s.cleared is None for s in self.spans[component])

    def _end(self, component: str, position: int) -> None:
        spans = self.spans.get(component, [])
        for span in spans:
            if span.holds(position) and span.faults[0] < position:
                behind = [fault for fault in span.faults if fault > position]
                if behind:
                    spans.append(Span(behind, span.cleared))
                    spans.sort(key=lambda each: each.faults[0])
                span.faults = [fault for fault in span.faults if fault < position]
                span.cleared = position
                return


Step = tuple[int, str, str]  # position, kind, component


def truth(steps: Sequence[Step]) -> list[list[int]]:
    """What in-order processing of one key gives: runs of faults between returns."""
    runs: list[list[int]] = []
    is_open = False
    for position, kind, _ in sorted(steps):
        if kind == RAISE:
            if not is_open:
                runs.append([])
            runs[-1].append(position)
        is_open = kind == RAISE
    return runs


def play(
    plant: Plant, batches: Sequence[tuple[Sequence[Step], str]], warnings: frozenset[int] = frozenset()
) -> Model:
    """Apply batches to the stage and to the model; before each one a restart, a rollback, or nothing."""
    model = Model()
    for batch, before in batches:
        changes = [
            change(
                line(at=position),
                kind,
                facts=Facts("press", True, component or None),
                severity=Severity.WARNING if position in warnings else Severity.ERROR,
            )
            for position, kind, component in batch
        ]
        if before == "restart":
            plant.alarms.forget()
        elif before == "rollback":
            plant.apply(*changes, fail=True)
        plant.apply(*changes)
        for position, kind, component in sorted(batch):
            (model.fault if kind == RAISE else model.clear)(component, position)
    return model


@st.composite
def arrivals(draw: st.DrawFn, components: Sequence[str]) -> list[tuple[list[Step], str]]:
    """Events in any order, cut into batches, some with a restart or a rollback before them."""
    kinds = draw(
        st.lists(st.tuples(st.sampled_from([RAISE, RAISE, CLEAR]), st.sampled_from(components)), max_size=14)
    )
    steps = [(position + 1, kind, component) for position, (kind, component) in enumerate(kinds)]
    order = draw(st.permutations(steps))
    batches = []
    while order:
        size = draw(st.integers(1, len(order)))
        batches.append((list(order[:size]), draw(st.sampled_from(["", "", "restart", "rollback"]))))
        order = order[size:]
    return batches


def found(plant: Plant) -> dict[str, list[tuple[int, int, int | None, int]]]:
    spans: dict[str, list[tuple[int, int, int | None, int]]] = {}
    for row in plant.rows(openings, "opened_seq"):
        component = row["subject"].removeprefix("press").removeprefix("/")
        values = (row["opened_seq"], row["last_seq"], row["cleared_seq"], row["occurrences"])
        spans.setdefault(component, []).append(values)
    return spans


def expected(model: Model) -> dict[str, list[tuple[int, int, int | None, int]]]:
    return {
        component: [(span.faults[0], span.faults[-1], span.cleared, len(span.faults)) for span in spans]
        for component, spans in model.spans.items()
        if spans
    }


@settings(max_examples=150, deadline=None)
@given(arrivals(["Fan 2"]))
def test_one_key_in_any_order(batches: list[tuple[list[Step], str]]) -> None:
    plant = PLANT.reset()
    model = play(plant, batches)
    assert found(plant) == expected(model)
    steps = [step for batch, _ in batches for step in batch]
    spans = [set(span.faults) for span in model.spans.get("Fan 2", [])]
    for run in truth(steps):
        assert any(set(run) <= span for span in spans), "what belongs together stays together"
    last = max(steps, default=None)
    is_open = any(span.cleared is None for span in model.spans.get("Fan 2", []))
    assert is_open == (last is not None and last[1] == RAISE), "open exactly when the last word was a fault"


@settings(max_examples=150, deadline=None)
@given(arrivals(["Fan 2", "Fan 3", SCOPE]))
def test_keys_of_one_scope_in_any_order(batches: list[tuple[list[Step], str]]) -> None:
    plant = PLANT.reset()
    assert found(plant) == {}
    model = play(plant, batches)
    assert found(plant) == expected(model)
    asked = {row["seq"] for row in plant.rows(events, "seq") if row["state"] == "review"}
    assert asked == model.asked
    assert {row["seq"] for row in plant.rows(reviews)} == asked


TRUE = ("Fan 2", "Fan 3", "Fan 4")


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(TRUE), st.booleans()), max_size=20))
def test_no_return_ends_the_alarm_of_another_component(told: list[tuple[str, bool]]) -> None:
    """Whatever returns say of the component, and with one whose faults never do."""
    plant = PLANT.reset()
    said: dict[int, str] = {}
    faulty: set[str] = set()
    for position, (component, names) in enumerate(told, 1):
        kind = CLEAR if component in faulty else RAISE
        named = names if kind == CLEAR else component != "Fan 4"
        faulty ^= {component}
        said[position] = component
        plant.apply(change(line(at=position), kind, facts=Facts("press", True, component if named else None)))
    for row in plant.rows(openings):
        if row["cleared_seq"] is not None:
            assert said[row["opened_seq"]] == said[row["cleared_seq"]]
    if not plant.rows(reviews):
        still = {said[row["opened_seq"]] for row in plant.rows(openings) if row["cleared_seq"] is None}
        assert still == faulty, "and without a doubt none is missed"


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from([RAISE, CLEAR]), max_size=12),
    st.lists(st.integers(1, 4), min_size=12, max_size=12),
)
def test_in_order_it_is_the_truth(kinds: list[str], sizes: list[int]) -> None:
    steps: list[Step] = [(position + 1, kind, "Fan 2") for position, kind in enumerate(kinds)]
    plant, rest = PLANT.reset(), list(steps)
    for size in sizes:
        play(plant, [(rest[:size], "")])
        rest = rest[size:]
    runs = truth(steps[: len(steps) - len(rest)])
    assert [(a, z) for a, z, _, _ in found(plant).get("Fan 2", [])] == [(run[0], run[-1]) for run in runs]


@settings(max_examples=150, deadline=None)
@given(arrivals(["Fan 2", SCOPE]), st.frozensets(st.integers(1, 14)))
def test_books_balance(batches: list[tuple[list[Step], str]], warnings: frozenset[int]) -> None:
    """Each ticket has its own key and one event that opened it; events and openings agree on who is whose.

    Warnings open alarms without a ticket: a ticket comes with the first error, and splits keep that.
    """
    plant = PLANT.reset()
    play(plant, batches, warnings)
    rows = plant.rows(openings)
    keys = [row["key"] for row in plant.rows(outbox_table)]
    assert sorted(keys) == sorted({row["ticket_key"] for row in rows} - {None})
    assert len({(row["subject"], row["number"]) for row in rows}) == len(rows)
    settled = plant.rows(events, "seq", "idx")
    for row in rows:
        own = [each for each in settled if each["opening_id"] == row["id"]]
        openers = [each for each in own if each["reason"] == "opened"]
        assert len(openers) == (row["ticket_key"] is not None)
        assert all(each["state"] == "ticket" for each in openers)
        assert len(own) == row["occurrences"]
        assert (own[0]["seq"], own[-1]["seq"]) == (row["opened_seq"], row["last_seq"])
