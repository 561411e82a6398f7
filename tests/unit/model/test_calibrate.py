"""Thresholds that are proved: the proof itself by simulation, and the counts that go into it."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_fakes import LABELS

from pipeline.fields.definition import FieldConfig, Profile
from pipeline.model import bounds, calibrate
from pipeline.model.calibrate import GRID, Counts, Curve, Evidence, Goal, Kind, Status
from pipeline.model.evaluate import Labelled
from pipeline.model.rules import RulesReader
from schemas.extraction import FieldType

GOAL = Goal(0.95, 0.9)
RUNS = 1500


def curve(answers: Sequence[tuple[float, bool]]) -> Curve:
    return Curve(Evidence([(line, confidence, right) for line, (confidence, right) in enumerate(answers)]))


# --- the guarantee, by simulation ---------------------------------------------------------------------------
# A world is what stands behind the data: for each confidence, how common it is and how often it is wrong.

World = Sequence[tuple[float, float, float]]
EDGE = [(c, 1.0, 0.0501) for c in (0.995, 0.97, 0.9, 0.8, 0.6, 0.4)]  # everywhere just over the 5 % allowed
SLOPE = [(0.995, 3, 0.01), (0.97, 3, 0.03), (0.9, 3, 0.06), (0.8, 2, 0.12), (0.6, 1, 0.3), (0.35, 1, 0.6)]
STEP = [(0.995, 4, 0.0), (0.9, 1, 0.26), (0.5, 1, 0.5)]
BACKWARDS = [(0.999, 1, 0.1), (0.9, 1, 0.0005), (0.5, 4, 0.0505)]  # the surest are the worst
THIN_TOP = [
    (0.999, 45, 0.0503),
    (0.9, 3, 0.05),
    (0.5, 20, 0.05001),
]  # the first testable step is drawn by lot
WORLDS = {"edge": EDGE, "slope": SLOPE, "step": STEP, "backwards": BACKWARDS, "thin top": THIN_TOP}


def true_risk(world: World, threshold: float) -> float:
    reached = [(weight, wrong) for confidence, weight, wrong in world if confidence >= threshold]
    return sum(weight * wrong for weight, wrong in reached) / sum(weight for weight, _ in reached)


def draw(world: World, lines: int, rng: random.Random) -> Curve:
    cells = rng.choices(world, cum_weights=list(accumulate(weight for _, weight, _ in world)), k=lines)
    return curve([(confidence, rng.random() >= wrong) for confidence, _, wrong in cells])


def proved(drawn: Curve) -> Counts | None:
    status, counts = calibrate.certify(drawn, GOAL)
    return counts if status is Status.CERTIFIED else None


def failures(world: World, lines: int, choose: Callable[[Curve], Counts | None] = proved) -> float:
    """The share of calibrations whose threshold lets through more errors than allowed."""
    rng, failed = random.Random(20260301), 0
    for _ in range(RUNS):
        chosen = choose(draw(world, lines, rng))
        failed += chosen is not None and true_risk(world, chosen.threshold) > GOAL.risk
    return failed / RUNS


def by_eye(drawn: Curve) -> Counts | None:
    """What is done without a proof: the loosest threshold at which the errors seen look few enough."""
    fitting = [c for c in map(drawn.at, GRID) if c.accepted and c.errors <= GOAL.risk * c.accepted]
    return fitting[-1] if fitting else None


@pytest.mark.parametrize("lines", [60, 400])
@pytest.mark.parametrize("world", WORLDS)
def test_a_wrong_threshold_is_as_rare_as_promised(world: str, lines: int) -> None:
    doubt = 1 - GOAL.confidence
    chance = 3 * (doubt * (1 - doubt) / RUNS) ** 0.5  # of the simulation: three standard errors
    assert failures(WORLDS[world], lines) <= doubt + chance


def test_the_promise_is_not_kept_by_refusing_everything() -> None:
    rng = random.Random(7)
    thresholds = [proved(draw(SLOPE, 2000, rng)) for _ in range(100)]
    assert all(chosen is not None for chosen in thresholds)
    found = [chosen.threshold for chosen in thresholds if chosen is not None]
    assert sum(threshold <= 0.9 for threshold in found) >= 85  # 0.9 is the loosest with room to prove it


def test_where_every_threshold_is_a_little_too_bad_the_doubt_is_used_up_and_a_look_fails_often() -> None:
    assert 0.03 <= failures(EDGE, 400) <= 0.13
    assert failures(EDGE, 400, by_eye) >= 0.4


# --- the search ---------------------------------------------------------------------------------------------


def test_nothing_proves_nothing() -> None:
    assert calibrate.certify(curve([]), GOAL) == (Status.TOO_FEW, Counts(GRID[-1], 0, 0, 0))


def test_all_wrong_is_too_wrong_and_too_few_of_them_too_few() -> None:
    assert calibrate.certify(curve([(0.999, False)] * 500), GOAL) == (
        Status.TOO_WRONG,
        Counts(0.999, 500, 500, 500),
    )
    assert calibrate.certify(curve([(0.999, False)] * 44), GOAL)[0] is Status.TOO_FEW


def test_all_right_needs_exactly_the_lines_it_says() -> None:
    enough = GOAL.lines
    assert enough == 45
    assert calibrate.certify(curve([(0.9, True)] * (enough - 1)), GOAL)[0] is Status.TOO_FEW
    status, counts = calibrate.certify(curve([(0.9, True)] * enough), GOAL)
    assert (status, counts) == (Status.CERTIFIED, Counts(0.9, enough, 0, enough))


def test_a_threshold_is_no_looser_than_what_was_seen() -> None:
    _, counts = calibrate.certify(curve([(0.985, True)] * 99 + [(0.961, True)]), GOAL)
    assert counts == Counts(0.96, 100, 0, 100)


def test_equal_confidences_are_accepted_together_or_not_at_all() -> None:
    tied = curve([(0.9, True)] * 100 + [(0.8, False)] * 30)
    status, counts = calibrate.certify(tied, GOAL)
    assert status is Status.CERTIFIED
    assert counts == Counts(0.9, 100, 0, 100)
    assert tied.at(0.8) == Counts(0.8, 130, 30, 130)
    assert tied.at(0.9) == Counts(0.9, 100, 0, 100)


answers = st.lists(st.tuples(st.sampled_from([*GRID, 0.0, 1.0, 0.9321]), st.booleans()), max_size=200)
goals = st.builds(Goal, st.sampled_from([0.7, 0.9, 0.99]), st.sampled_from([0.6, 0.9, 0.99]))


@given(answers, goals)
def test_what_is_certified_has_its_bound_under_the_risk(
    answers: list[tuple[float, bool]], goal: Goal
) -> None:
    drawn = curve(answers)
    status, counts = calibrate.certify(drawn, goal)
    assert counts == drawn.at(counts.threshold)
    if status is Status.CERTIFIED:
        assert bounds.upper(counts.errors, counts.accepted, goal.confidence) <= goal.risk + 1e-9


@given(answers, st.randoms(use_true_random=False))
def test_the_order_of_lines_does_not_matter(
    answers: list[tuple[float, bool]], shuffler: random.Random
) -> None:
    shuffled = list(answers)
    shuffler.shuffle(shuffled)
    assert calibrate.certify(curve(answers), GOAL) == calibrate.certify(curve(shuffled), GOAL)


def loosest(answers: list[tuple[float, bool]], goal: Goal) -> float:
    status, counts = calibrate.certify(curve(answers), goal)
    return counts.threshold if status is Status.CERTIFIED else 2.0


@given(answers, st.integers(0, 199))
def test_one_more_error_never_loosens(answers: list[tuple[float, bool]], at: int) -> None:
    worse = [(c, right and number != at) for number, (c, right) in enumerate(answers)]
    goal = Goal(0.7, 0.9)
    assert loosest(worse, goal) >= loosest(answers, goal)


def test_one_unlucky_line_among_the_surest_does_not_end_the_search() -> None:
    unlucky = [(0.999, True)] * 50 + [(0.999, False)] + [(0.9, True)] * 349
    assert loosest(unlucky, GOAL) == 0.9


def test_looser_thresholds_accept_no_less() -> None:
    assert all(a > b for a, b in pairwise(GRID))
    drawn = draw(SLOPE, 300, random.Random(3))
    counts = [drawn.at(threshold) for threshold in GRID]
    assert all(a.accepted <= b.accepted and a.errors <= b.errors for a, b in pairwise(counts))


# --- lines and groups ---------------------------------------------------------------------------------------


def test_a_line_with_one_wrong_value_among_three_errs_once() -> None:
    evidence = Evidence([(0, 0.99, True), (0, 0.9, False), (0, 0.8, False), (1, 0.95, True)])
    drawn = Curve(evidence)
    assert (drawn.lines, drawn.answers) == (2, 4)
    assert drawn.at(0.95) == Counts(0.95, 2, 0, 2)
    assert drawn.at(0.85) == Counts(0.85, 2, 1, 3)
    assert drawn.at(0.0) == Counts(0.0, 2, 1, 4)


def test_what_is_absent_is_no_answer_and_what_is_overlooked_is_missed() -> None:
    evidence = Evidence()
    evidence.add(0, None, None, 0.99)
    evidence.add(1, "7", None, 0.99)
    evidence.add(2, None, "7", 0.999_96)
    assert evidence == Evidence([(2, 1.0, False)], missed=1)


PROFILE = Profile(
    fields={
        "hot": FieldConfig(type=FieldType.QUANTITY, description="temperature that was measured", unit="°C"),
        "bar": FieldConfig(type=FieldType.QUANTITY, description="pressure that was measured", unit="bar"),
    }
)
ROWS = [
    Labelled(line="temperature 80 °C, pressure 3 bar", fields={"hot": "80", "bar": "3"}, severity="info"),
    Labelled(line="temperature 81 °C", fields={"hot": "82", "strange": "81"}),
]


def test_answers_are_grouped_by_type_field_decision_and_pattern() -> None:
    groups = calibrate.collect(ROWS, RulesReader(), PROFILE, LABELS, pattern_of=len_of)
    assert {key: len(evidence.answers) for key, evidence in groups.items()} == {
        (Kind.ALL, "every field"): 3,
        (Kind.TYPE, "quantity"): 3,
        (Kind.FIELD, "hot"): 2,
        (Kind.FIELD, "bar"): 1,
        (Kind.DECISION, "severity"): 1,
        (Kind.PATTERN, "33"): 2,
        (Kind.PATTERN, "17"): 1,
    }
    wrong = [right for _, _, right in groups[Kind.FIELD, "hot"].answers]
    assert wrong == [True, False]


def len_of(line: str) -> str:
    return str(len(line))


def test_an_uncertified_group_tells_of_the_threshold_in_force() -> None:
    groups = calibrate.collect(ROWS, RulesReader(), PROFILE, LABELS)
    found = {f.name: f.report() for f in calibrate.find(groups, GOAL, lambda kind, name: 0.0)}
    assert found["hot"] == {
        "kind": "field",
        "name": "hot",
        "status": "too_few",
        "threshold": None,
        "at": 0.0,
        "n": 2,
        "accepted": 2,
        "errors": 1,
        "error_rate": 0.5,
        "upper": pytest.approx(0.948683, abs=1e-6),  # sqrt(0.9): both wrong is the only way to be worse
        "coverage": 1.0,
        "missed": 0,
        "needed": 45,
    }


@pytest.mark.parametrize(
    ("answers", "needed"),
    [
        ([(0.9, True)] * 20, 45),  # too few
        ([(0.9, True)] * 45, 45),  # just enough
        ([(0.9, True)] * 49 + [(0.9, False)], 77),  # 2 % wrong: with one error 77 lines prove 5 %
        ([(0.9, True)] * 45 + [(0.9, False)] * 5, None),  # 10 % wrong: no number of such lines does
        ([(0.2, True)] * 900, 45),  # many lines, none of them sure
    ],
)
def test_how_many_lines_would_do(answers: list[tuple[float, bool]], needed: int | None) -> None:
    evidence = Evidence([(line, *answer) for line, answer in enumerate(answers)])
    (found,) = calibrate.find({(Kind.ALL, "all"): evidence}, GOAL, lambda kind, name: 0.8)
    assert found.needed == needed
    if needed is not None:
        errors = found.settled.errors
        assert bounds.upper(errors, needed, GOAL.confidence) <= GOAL.risk


def test_many_unsure_lines_do_not_hide_the_sure_ones() -> None:
    status, counts = calibrate.certify(curve([(0.9, True)] * 45 + [(0.2, False)] * 1000), GOAL)
    assert (status, counts.accepted) == (Status.CERTIFIED, 45)


def test_no_lines_give_one_empty_group() -> None:
    groups = calibrate.collect([], RulesReader(), PROFILE, LABELS)
    (found,) = calibrate.find(groups, GOAL, lambda kind, name: 0.8)
    assert (found.status, found.upper, found.report()["coverage"]) == (Status.TOO_FEW, 1.0, None)


def test_a_goal_nobody_can_prove_is_refused() -> None:
    with pytest.raises(ValueError, match="no number of lines"):
        _ = Goal(1.0).lines
