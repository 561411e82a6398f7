"""Metrics: good names, promtool's opinion, and no value that was never measured."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest
from prometheus_client import REGISTRY
from prometheus_client.parser import text_string_to_metric_families

from pipeline.telemetry import Metrics
from pipeline.telemetry.metrics import MODEL_STATES

# The contract with dashboards and alert rules: name, type, labels.
EXPECTED = {
    "andon_messages_received_total": {"source"},
    "andon_messages_acknowledged_total": {"source"},
    "andon_events_total": {"source", "outcome"},
    "andon_journal_commits_total": set(),
    "andon_journal_commit_seconds_count": set(),
    "andon_receive_to_ack_seconds_count": set(),
    "andon_intake_accepting": set(),
    "andon_pending_events": set(),
    "andon_unread_events": set(),
    "andon_unread_oldest_seconds": set(),
    "andon_model_readings_total": set(),
    "andon_model_seconds_total": set(),
    "andon_model_state": {"state"},
    "andon_patterns": set(),
    "andon_alarms_open": set(),
    "andon_outbox": {"state"},
    "andon_sink_attempts_total": {"sink", "result"},
    "andon_review_open": set(),
    "andon_wal_bytes": set(),
    "andon_store_free_bytes": set(),
    "andon_source_connected": {"source"},
    "andon_source_queue_depth": {"source"},
    "andon_messages_dropped_total": {"source"},
    "andon_session_lost_total": {"source"},
    "andon_watchdog_pings_total": set(),
    "andon_watchdog_withheld_total": set(),
    "andon_build_info": {"version", "python", "sqlite"},
}


@pytest.fixture
def used() -> Metrics:
    """Metrics of a service that has done a little of everything."""
    metrics = Metrics()
    metrics.declare_source("line7")
    metrics.received.labels("line7").inc(20)
    metrics.events.labels("line7", "ticket").inc()
    metrics.commit_seconds.observe(0.004)
    metrics.receive_to_ack.observe(0.02)
    metrics.set_model_state("ready")
    metrics.set_outbox({"queued": 2, "sent": 40})
    metrics.sink_attempts.labels("board", "sent").inc()
    metrics.free_bytes.set(5e9)
    return metrics


def samples(metrics: Metrics) -> dict[str, list[tuple[dict[str, str], float]]]:
    found: dict[str, list[tuple[dict[str, str], float]]] = {}
    for family in text_string_to_metric_families(metrics.exposition().decode()):
        for sample in family.samples:
            found.setdefault(sample.name, []).append((sample.labels, sample.value))
    return found


def test_promtool_finds_nothing_to_complain_about(used: Metrics, require: Callable[[str], str]) -> None:
    done = subprocess.run(
        [require("promtool"), "check", "metrics"], input=used.exposition(), capture_output=True, timeout=30
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_every_metric_of_the_contract_is_there_with_its_labels(used: Metrics) -> None:
    found = samples(used)
    for name, labels in EXPECTED.items():
        assert set(found[name][0][0]) == labels, name
    ours = {name for name in found if name.startswith("andon_")}
    histograms = {name.rsplit("_", 1)[0] for name in ours if name.endswith("_count")}
    parts = {f"{name}_{suffix}" for name in histograms for suffix in ("bucket", "sum", "count")}
    assert ours - parts == set(EXPECTED) - parts


def test_a_gauge_nobody_has_set_is_not_a_number(used: Metrics) -> None:
    found = samples(Metrics())
    for name in (
        "andon_store_free_bytes",
        "andon_intake_accepting",
        "andon_pending_events",
        "andon_wal_bytes",
    ):
        assert found[name][0][1] != found[name][0][1], f"{name} claims a value that was never measured"
    assert samples(used)["andon_store_free_bytes"][0][1] == 5e9


def test_a_declared_source_begins_at_zero(used: Metrics) -> None:
    found = samples(used)
    assert ({"source": "line7"}, 0.0) in found["andon_session_lost_total"]
    assert ({"source": "line7"}, 0.0) in found["andon_source_connected"]


@pytest.mark.parametrize(
    ("totals", "expected"), [([0, 2, 2, 5], 5), ([3], 3), ([4, 1, 2], 6), ([2, 0, 0, 1], 3)]
)
def test_a_sources_own_totals_are_counted_on_also_when_it_is_built_anew(
    totals: list[int], expected: int
) -> None:
    metrics = Metrics()
    metrics.declare_source("line7")
    for total in totals:
        metrics.update_source("line7", connected=True, queue_depth=1, dropped=total, session_lost=0)
    found = samples(metrics)
    assert found["andon_messages_dropped_total"] == [({"source": "line7"}, float(expected))]
    assert found["andon_session_lost_total"] == [({"source": "line7"}, 0.0)]
    assert found["andon_source_connected"] == [({"source": "line7"}, 1.0)]


@pytest.mark.parametrize("state", MODEL_STATES)
def test_the_model_is_in_exactly_one_state(state: str) -> None:
    metrics = Metrics()
    metrics.set_model_state("loading")
    metrics.set_model_state(state)
    states = {labels["state"]: value for labels, value in samples(metrics)["andon_model_state"]}
    assert states == {name: float(name == state) for name in MODEL_STATES}


def test_an_unknown_state_of_the_model_is_refused() -> None:
    with pytest.raises(ValueError, match="no state of the model"):
        Metrics().set_model_state("asleep")


def test_outbox_states_that_emptied_do_not_linger(used: Metrics) -> None:
    used.set_outbox({"sent": 42})
    assert samples(used)["andon_outbox"] == [({"state": "sent"}, 42.0)]


def test_two_services_in_one_process_share_nothing() -> None:
    first, second = Metrics(), Metrics()
    first.commits.inc()
    assert samples(second)["andon_journal_commits_total"][0][1] == 0
    assert not [family for family in REGISTRY.collect() if family.name.startswith("andon")]
