"""What an MQTT session means to us: order of acknowledgements, subscriptions, back-off, streaks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from connectors.mqtt_session import AckWindow, Backoff, Cause, Ending, LinkOptions, Streak, Subscriptions

MIDS = st.lists(st.integers(1, 65_535), unique=True, max_size=40)


@given(MIDS, st.randoms(use_true_random=False), st.integers(1, 5))
def test_acks_come_out_in_arrival_order_each_once(mids: list[int], random: object, step: int) -> None:
    window = AckWindow()
    assert all(window.arrive(mid) for mid in mids)
    order = list(mids)
    random.shuffle(order)  # type: ignore[attr-defined]
    sent: list[int] = []
    settled: set[int] = set()
    for start in range(0, len(order), step):
        part = order[start : start + step]
        settled.update(part)
        sent += window.settle(part)
        prefix = next((i for i, mid in enumerate(mids) if mid not in settled), len(mids))
        assert sent == mids[:prefix]
    assert len(window) == 0


@given(MIDS, MIDS)
def test_unknown_ids_are_never_acknowledged(arrived: list[int], settled: list[int]) -> None:
    window = AckWindow()
    for mid in arrived:
        window.arrive(mid)
    assert set(window.settle(settled)) <= set(arrived)


def test_an_id_is_free_again_once_it_is_acknowledged() -> None:
    window = AckWindow()
    assert window.arrive(7)
    assert not window.arrive(7), "still open: the same message, sent again"
    assert window.settle([7]) == [7]
    assert window.settle([7]) == []
    assert window.arrive(7), "another message"
    assert window.settle([7]) == [7]


@given(st.integers(1, 10_000), st.floats(0.01, 10), st.floats(10, 600))
def test_back_off_grows_to_its_limit_with_jitter(failures: int, first_s: float, longest_s: float) -> None:
    delay = Backoff(first_s, longest_s).delay_s(failures)
    full = min(longest_s, first_s * 2 ** min(failures - 1, 16))
    assert full / 2 <= delay <= full


def test_back_off_is_not_in_step() -> None:
    assert len({Backoff().delay_s(3) for _ in range(20)}) > 1


def test_subscriptions_of_a_new_session() -> None:
    subscriptions = Subscriptions({"a": 1, "b": 0}, {})
    assert not subscriptions.on_session(False), "nothing was expected"
    assert subscriptions.missing() == {"a": 1, "b": 0}
    subscriptions.on_granted({"a": 1, "b": 0}, [1, 0])
    assert subscriptions.missing() == {}
    assert not subscriptions.on_session(True)
    assert subscriptions.missing() == {}
    assert subscriptions.on_session(False), "now it was expected"
    assert subscriptions.missing() == {"a": 1, "b": 0}


def test_a_changed_qos_is_subscribed_again() -> None:
    subscriptions = Subscriptions({"a": 1}, {"a": 0})
    subscriptions.on_session(True)
    assert subscriptions.missing() == {"a": 1}


def test_a_refused_filter_is_asked_for_again_on_the_next_connection() -> None:
    subscriptions = Subscriptions({"a": 1, "b": 1}, {})
    subscriptions.on_session(False)
    subscriptions.on_granted({"a": 1, "b": 1}, [1, 0x87])
    assert not subscriptions.all_refused
    subscriptions.on_session(True)
    assert subscriptions.missing() == {"b": 1}


def test_surplus_is_released() -> None:
    subscriptions = Subscriptions({"a": 1}, {"a": 1, "gone": 1})
    subscriptions.on_session(True)
    assert subscriptions.surplus() == ["gone"]
    subscriptions.on_released(["gone"])
    assert (subscriptions.surplus(), subscriptions.held) == ([], {"a": 1})


def short(cause: Cause) -> Ending:
    return Ending(cause, "", lived_s=0.5)


@pytest.mark.parametrize("cause", [Cause.CLOSED, Cause.BROKEN])
def test_five_short_lives_in_a_row_are_a_streak(cause: Cause) -> None:
    streak = Streak()
    assert [streak.add(short(cause)) for _ in range(5)] == [False] * 4 + [True]


@pytest.mark.parametrize(
    "between",
    [
        Ending(Cause.CLOSED, "", lived_s=60.0),
        Ending(Cause.UNREACHABLE, ""),
        Ending(Cause.SENT_AWAY, "", 0x8B, 1.0),
        Ending(Cause.SILENT, "", lived_s=1.0),
        short(Cause.BROKEN),
    ],
    ids=["a long life", "a broker that is down", "a reason", "silence", "another cause"],
)
def test_anything_else_ends_a_streak(between: Ending) -> None:
    streak = Streak()
    endings = [short(Cause.CLOSED)] * 4 + [between] + [short(Cause.CLOSED)] * 4
    assert not any(streak.add(ending) for ending in endings)


def test_options_never_show_the_password() -> None:
    options = LinkOptions("h", 1, "c", {"a": 1}, username="u", password="s3cret")
    assert "s3cret" not in repr(options)
