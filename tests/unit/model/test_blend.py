"""How two opinions add up: the surer one wins, agreement counts, nobody is sure beyond measure."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.model.blend import ALONE, MODEL_BOUND, PLAIN, RULES_BOUND, TUNED, Blend, Judgement, Weights
from schemas.extraction import Choice, FieldType, Tier

SCORE = st.floats(-30, 30)
EVERY = [TUNED, PLAIN]


@given(SCORE, SCORE, SCORE)
@pytest.mark.parametrize("weights", EVERY)
def test_more_evidence_never_counts_less(weights: Weights, rules: float, model: float, more: float) -> None:
    for kind in FieldType:
        blend = weights.field(kind)
        assert blend.of(rules + abs(more), model) >= blend.of(rules, model)
        assert blend.of(rules, model + abs(more)) >= blend.of(rules, model)


def test_either_is_bounded() -> None:
    blend = Blend(0.0, 1.0, 1.0)
    assert blend.of(99.0, 0.0) == RULES_BOUND
    assert blend.of(0.0, -99.0) == -MODEL_BOUND


@pytest.mark.parametrize("weights", EVERY)
@given(st.dictionaries(st.sampled_from("abcd"), SCORE, min_size=2), st.floats(0.3, 0.99))
def test_a_decision_is_one_of_the_options(
    weights: Weights, answer: dict[str, float], confidence: float
) -> None:
    for judgement in weights.decisions.values():
        for said in (Choice(), Choice(label=next(iter(answer)), confidence=confidence, tier=Tier.RULE)):
            given_ = judgement.of(said, answer)
            assert given_.label in answer or (given_.label is None and said.label is None)
            assert 0.0 < given_.confidence <= 1.0 + 1e-9


def test_agreement_is_surer_than_either_and_the_surer_one_wins() -> None:
    judgement = Judgement(1.0, 1.0)
    sure = {"a": math.log(0.9), "b": math.log(0.1)}
    alone = judgement.of(Choice(), sure)
    assert (alone.label, round(alone.confidence, 6)) == ("a", 0.9)
    assert judgement.of(Choice(label="a", confidence=0.7, tier=Tier.RULE), sure).confidence > 0.9
    assert judgement.of(Choice(label="b", confidence=0.7, tier=Tier.RULE), sure).label == "a"
    assert judgement.of(Choice(label="b", confidence=0.99, tier=Tier.RULE), sure).label == "b"


def test_the_model_alone_has_to_be_fairly_sure() -> None:
    judgement = Judgement(1.0, 1.0)
    assert judgement.of(Choice(), {"a": 0.1, "b": 0.0}).label is None
    assert judgement.of(Choice(), {"a": math.log(ALONE / (1 - ALONE)) + 0.01, "b": 0.0}).label == "a"
