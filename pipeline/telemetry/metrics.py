"""Every metric of the service, in a registry of our own. Names and units follow Prometheus' conventions.

Labels have few values by construction: source and sink names come from the site file, the rest are fixed
words. Topics, assets, patterns and messages are never labels. A gauge that nobody has set yet is NaN, not 0:
no alert may fire on a value that was never measured.
"""

from __future__ import annotations

import math
import platform
import sqlite3
from collections.abc import Mapping
from importlib import metadata

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)

# From an SSD's commit (under a millisecond) to an eMMC that is cleaning up behind itself (seconds).
COMMIT_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)

# A message waits for the commit before its own and for its own: the same range, one step later.
ACK_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)

MODEL_STATES = ("off", "loading", "ready", "failed")


class Metrics:
    """One object a service. Attributes are prometheus_client metrics:
    `metrics.received.labels("line7").inc(20)`.
    """

    def __init__(self) -> None:
        # The text format knows no creation times; as gauges they would only be noise.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self.registry = CollectorRegistry()
        self._totals: dict[tuple[Counter, str], int] = {}
        ProcessCollector(registry=self.registry)
        self._intake()
        self._outcomes()
        self._model()
        self._tickets()
        self._machine()

    def _intake(self) -> None:
        self.received = self._counter("messages_received", "Messages that sources handed over.", "source")
        self.acknowledged = self._counter(
            "messages_acknowledged", "Messages acknowledged to their source after the commit.", "source"
        )
        self.receive_to_ack = self._histogram(
            "receive_to_ack_seconds", "From a message's arrival to its acknowledgement.", ACK_BUCKETS
        )
        self.commits = self._counter("journal_commits", "Transactions that appended to the journal.")
        self.commit_seconds = self._histogram(
            "journal_commit_seconds", "One journal transaction, flush to disk included.", COMMIT_BUCKETS
        )
        self.accepting = self._gauge(
            "intake_accepting", "1 while messages are stored and acknowledged, 0 while the store refuses."
        )
        self.connected = self._gauge("source_connected", "1 while the source is connected.", "source")
        self.queue_depth = self._gauge(
            "source_queue_depth", "Messages received and not yet given to the journal.", "source"
        )
        self.dropped = self._counter(
            "messages_dropped",
            "QoS 0 messages dropped before the journal, since our queue was full.",
            "source",
        )
        self.session_lost = self._counter(
            "session_lost", "Times a broker had forgotten our session: messages may be missing.", "source"
        )

    def _outcomes(self) -> None:
        self.events = self._counter("events", "Events that reached their outcome.", "source", "outcome")
        self.pending = self._gauge("pending_events", "Events without an outcome yet: journaled or unread.")
        self.unread = self._gauge("unread_events", "Events of unknown patterns that wait for the model.")
        self.unread_oldest = self._gauge("unread_oldest_seconds", "Age of the oldest unread event.")
        self.patterns = self._gauge("patterns", "Patterns in the book.")
        self.alarms_open = self._gauge("alarms_open", "Alarms that have not returned to normal.")
        self.review_open = self._gauge("review_open", "Items in the review queue.")

    def _model(self) -> None:
        self.model_readings = self._counter("model_readings", "Lines that the model read.")
        self.model_seconds = self._counter("model_seconds", "Time the model spent reading.")
        self._model_state = self._gauge("model_state", "1 for the state the model is in.", "state")
        self.set_model_state("off")

    def _tickets(self) -> None:
        self.outbox = self._gauge("outbox", "Ticket requests by state.", "state")
        self.sink_attempts = self._counter(
            "sink_attempts", "Ticket requests sent, by answer.", "sink", "result"
        )

        self.sink_misconfigured = self._gauge(
            "sink_misconfigured",
            "1 while a sink refuses us, whatever the ticket: all of its tickets wait.",
            "sink",
        )

    def _machine(self) -> None:
        self.wal_bytes = self._gauge("wal_bytes", "Size of the store's write-ahead log.")
        self.free_bytes = self._gauge("store_free_bytes", "Free space on the store's file system.")
        self.watchdog_pings = self._counter("watchdog_pings", "Watchdog pings sent to systemd.")
        self.watchdog_withheld = self._counter(
            "watchdog_withheld", "Watchdog pings not sent because a stage was stalled."
        )
        Info("andon_build", "What runs here.", registry=self.registry).info(
            {
                "version": metadata.version("andon"),
                "python": platform.python_version(),
                "sqlite": sqlite3.sqlite_version,
            }
        )

    def declare_source(self, name: str) -> None:
        """Begin a source's series at zero, so that its first event is already an increase."""
        for counter in (self.received, self.acknowledged, self.dropped, self.session_lost):
            counter.labels(name)
        self.update_source(name, connected=False, queue_depth=0, dropped=0, session_lost=0)

    def update_source(
        self, name: str, *, connected: bool, queue_depth: int, dropped: int, session_lost: int
    ) -> None:
        """Take over a source's own figures; `dropped` and `session_lost` are totals since it was built."""
        self.connected.labels(name).set(connected)
        self.queue_depth.labels(name).set(queue_depth)
        self._raise_to(self.dropped, name, dropped)
        self._raise_to(self.session_lost, name, session_lost)

    def set_model_state(self, state: str) -> None:
        """`state` is one of MODEL_STATES; ValueError otherwise."""
        if state not in MODEL_STATES:
            raise ValueError(f"{state!r} is no state of the model; these are: {', '.join(MODEL_STATES)}")
        self._set_states(self._model_state, {name: float(name == state) for name in MODEL_STATES})

    def set_outbox(self, counts: Mapping[str, int]) -> None:
        """Ticket requests by state, all states at once: a state that is not named has none."""
        self.outbox.clear()
        self._set_states(self.outbox, counts)

    def exposition(self) -> bytes:
        """Everything in the Prometheus text format."""
        return generate_latest(self.registry)

    def _raise_to(self, counter: Counter, source: str, total: int) -> None:
        """Count what was added since the last call. A smaller total is that of a source built anew."""
        before = self._totals.get((counter, source), 0)
        counter.labels(source).inc(total - before if total >= before else total)
        self._totals[counter, source] = total

    @staticmethod
    def _set_states(gauge: Gauge, values: Mapping[str, float]) -> None:
        for state, value in values.items():
            gauge.labels(state).set(value)

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"andon_{name}", text, labels, registry=self.registry)

    def _gauge(self, name: str, text: str, *labels: str) -> Gauge:
        gauge = Gauge(f"andon_{name}", text, labels, registry=self.registry)
        if not labels:
            gauge.set(math.nan)
        return gauge

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...]) -> Histogram:
        return Histogram(f"andon_{name}", text, buckets=buckets, registry=self.registry)
