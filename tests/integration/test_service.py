"""The service beside a real broker: readiness, acknowledgement, drain, one store, odd payloads."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import pytest
from accounts import Look, assert_each_once, assert_one_ticket_each, assert_settled, assert_sound
from andon import andon
from consumer import until
from demo_site import http_sink
from gateway import Gateway
from model_fakes import gguf
from mosquitto import Mosquitto
from ports import free_port
from publisher import Publisher
from slow_tickets import SlowTicketServer
from sqlalchemy import Connection

from connectors.mqtt import MqttConfig
from pipeline.stages.dedupe import REDELIVERED
from pipeline.stages.intake import Intake
from pipeline.store.engine import Store
from pipeline.telemetry import Metrics

pytestmark = [pytest.mark.broker, pytest.mark.timeout(120)]

T = TypeVar("T")

TOPIC = "hall/press-4/log"
FAULT = b"2026-03-02 06:14:01 FAULT PH-31 hydraulic pressure 92.1 bar, minimum is 120"
RULE = {"id": "pressure-low", "when": {"code": ["PH-31"]}, "severity": "error", "action": "call_mechanic"}
ALIVE = {"id": "alive", "when": {"text": "^online$"}, "discard": True}

# More than the service accepts before it is told to stop.
BACKLOG = 5000

# Its hash alone takes far longer than the test looks at it. The file has a hole and takes no room.
MODEL_BYTES = 64 * 2**30


class Hall:
    """A broker, a ticket system, and the site that is made of them."""

    def __init__(self, folder: Path, broker: Mosquitto, server: SlowTicketServer, stack: ExitStack) -> None:
        self.folder, self.broker, self.server, self._stack = folder, broker, server, stack

    def site(self, **settings: Any) -> dict[str, Any]:
        source = {
            "type": "mqtt",
            "port": self.broker.port,
            "topics": ["hall/#"],
            "topic_template": "hall/{asset}/+",
            **settings.pop("source", {"mode": "live"}),
        }
        return {
            "model": {"enabled": False},
            "sources": {"presses": source},
            "rules": [ALIVE, RULE],
            "sinks": {"desk": http_sink(self.server.url, idempotent=False)},
            "routes": [{"id": "all", "sink": "desk"}],
            **settings,
        }

    def gateway(self, **settings: Any) -> Gateway:
        """A running gateway whose session the broker keeps."""
        made = Gateway(self.folder / "gateway", self.site(**settings))
        self._stack.callback(made.kill)
        made.start()
        made.until(lambda: made.logged("source.subscribed"), "the source is subscribed")
        return made


@pytest.fixture
def hall(tmp_path: Path) -> Iterator[Hall]:
    with ExitStack() as stack:
        broker = stack.enter_context(Mosquitto(tmp_path / "broker", persist=False))
        server = SlowTicketServer()
        stack.enter_context(server)
        yield Hall(tmp_path, broker, server, stack)


# --- start and stop -----------------------------------------------------------------------------------


def test_sigterm_drains(hall: Hall) -> None:
    gateway = hall.gateway()
    look = Look(gateway.store)
    messages = [(TOPIC, b"%b, stroke %d" % (FAULT, number)) for number in range(BACKLOG)]
    with Publisher(hall.broker.port, messages) as publisher:
        gateway.until(lambda: look.accepted > 500, "the service is at work")
        assert gateway.stop() == 0
        accepted = look.accepted
        assert look.number("SELECT count(*) FROM journal WHERE seq NOT IN (SELECT seq FROM events)") == 0
        assert look.sending == 0
        assert_sound(gateway.store)
        gateway.start()
        publisher.wait()
        gateway.until(lambda: look.accepted >= BACKLOG and look.is_drained, "the rest is settled")
        assert gateway.stop() == 0
        assert accepted < BACKLOG, "nothing was left when it was stopped"
        assert look.repeats(REDELIVERED) == {}, "what was accepted was acknowledged before the end"
        assert_each_once(gateway.store, publisher.ledger)
    assert_sound(gateway.store)
    assert_settled(gateway.store)
    assert assert_one_ticket_each(gateway.store, "desk", hall.server) == 1


def test_a_second_service_on_the_same_store_is_refused(hall: Hall) -> None:
    gateway = hall.gateway()
    refused = andon("run", gateway.site)
    assert refused.code == 3
    assert refused.out == ""
    assert str(gateway.store) in refused.err and f"in use by process {gateway.pid}." in refused.err
    assert "Traceback" not in refused.err
    assert gateway.ask("status")["stalled"] == [], "the first one goes on"
    assert gateway.stop() == 0
    gateway.start()
    gateway.until(gateway.is_ready, "the store is free again")


def test_ready_before_the_model_has_loaded(hall: Hall, tmp_path: Path) -> None:
    model = tmp_path / "large.gguf"
    model.write_bytes(gguf({"general.architecture": "llama"}, [("t", 8, 0)], b"\0" * 32))
    with model.open("r+b") as file:
        file.truncate(MODEL_BYTES)
    metrics = {"port": free_port()}
    gateway = hall.gateway(model={"path": str(model)}, metrics=metrics)
    look = Look(gateway.store)
    gateway.until(lambda: gateway.health().get("ready"), "readiness")
    hall.broker.publish([(TOPIC, b"online"), (TOPIC, FAULT)])
    gateway.until(lambda: look.accepted == 2 and look.unread == 1, "intake and rules do not wait")
    assert look.states() == {("discard", "alive"): 1, ("unread", ""): 1}
    health = gateway.health()
    assert (health["model"], health["stalled"]) == ("loading", [])
    assert health["live"] and health["ready"]
    assert gateway.stop() == 0, "nor does the end: it would take minutes"
    assert look.unread == 1
    assert_sound(gateway.store)


# --- accepted means durable ---------------------------------------------------------------------------


class HeldStore:
    """A store whose writes wait until `go` is set, as on a disk that does not answer."""

    def __init__(self, store: Store) -> None:
        self.go = asyncio.Event()
        self.waiting = 0
        self._store = store

    async def write(self, fn: Callable[[Connection], T]) -> T:
        self.waiting += 1
        await self.go.wait()
        return await self._store.write(fn)


async def test_no_acknowledgement_before_the_commit(hall: Hall) -> None:
    """The broker itself says when it hears a PUBACK."""
    source = MqttConfig(type="mqtt", port=hall.broker.port, topics=["hall/#"]).build("presses")
    store = await asyncio.to_thread(Store.open, hall.folder / "andon.db")
    held = HeldStore(store)
    intake = Intake(source, held, asyncio.Event(), Metrics())  # type: ignore[arg-type]
    running = asyncio.create_task(intake.run())
    try:
        await until(lambda: hall.broker.logged("Sending SUBACK to andon-presses"), "subscribed")
        await asyncio.to_thread(hall.broker.publish, [(TOPIC, b"%d" % n) for n in range(100)])
        await until(lambda: source.stats().received == 100, "100 messages are here")
        await until(lambda: held.waiting, "the first write")
        assert hall.broker.logged("Received PUBACK from andon-presses") == 0
        assert Look(store.path).accepted == 0
        held.go.set()
        await until(lambda: hall.broker.logged("Received PUBACK from andon-presses") == 100, "100 PUBACKs")
        assert Look(store.path).accepted == 100
    finally:
        held.go.set()
        await source.pause()
        await running
        await source.close()
        await asyncio.to_thread(store.close)


# --- what is decided ----------------------------------------------------------------------------------


def test_observe_mode_sends_nothing_and_shows_what_would_be(hall: Hall) -> None:
    gateway = hall.gateway(source={})  # the mode of a source that states none
    look = Look(gateway.store)
    hall.broker.publish([(TOPIC, FAULT), (TOPIC, FAULT.replace(b":01", b":09"))])
    gateway.until(lambda: look.accepted == 2 and look.is_drained, "both are settled")
    assert look.states() == {("discard", "observed"): 2}
    assert look.rows("SELECT subject, cause, severity, action, occurrences, ticket_key FROM openings") == [
        ("press-4", "PH-31", "error", "call_mechanic", 2, None)
    ]
    status = gateway.ask("status")
    assert (status["alarms_open"], status["counts"]["tickets"]) == (1, 0)
    assert gateway.stop() == 0
    assert look.rows("SELECT * FROM outbox") == []
    assert hall.server.requests == 0
    assert_sound(gateway.store)


NESTED = 1500  # levels, far beyond Python's own limit of recursion

# Payload, and the reasons of the events that come of it.
ODD: dict[str, tuple[bytes, set[str]]] = {
    "no text": (bytes(range(128, 256)) * 4, {"undecodable"}),
    "NUL bytes": (b"\0\0\0\0pressure\0", {"unsure_severity"}),
    "empty": (b"", {"empty_payload"}),
    "blank": (b" \r\n\t ", {"empty_payload"}),
    "a line of 1 MB": (b"pressure " * 110_000, {"line_too_long"}),
    "over the largest payload": (b"x" * (1_048_576 + 1), {"payload_too_large"}),
    "deep JSON": (b"[" * NESTED + b"1" + b"]" * NESTED, {"json_too_deep"}),
    "cut JSON": (b'{"temperature": 31.5, "uni', {"broken_json"}),
    "NaN": (b'{"temperature": NaN}', {"below_ticket_from"}),
    "beyond every float": (b'{"temperature": 1e400}', {"below_ticket_from"}),
    "beyond 64 bits": (b'{"temperature": 18446744073709551616}', {"routine"}),
    "a list for a value": (b'{"temperature": {"value": [1, 2]}}', {"routine"}),
    "text for a value": (b'{"temperature": "hot", "unit": 7}', {"unsure_severity"}),
    "lone surrogate": (b'{"message": "valve \\ud800 stuck"}', {"unsure_severity"}),
    "a mere true": (b"true", {"unsure_severity"}),
}


def test_odd_payloads_are_asked_or_discarded_by_name_and_the_service_goes_on(hall: Hall) -> None:
    gateway = hall.gateway()
    look = Look(gateway.store)
    hall.broker.publish(
        [(f"hall/odd-{number}/log", payload) for number, (payload, _) in enumerate(ODD.values())]
    )
    hall.broker.publish([(TOPIC, FAULT)])
    gateway.until(lambda: look.accepted == len(ODD) + 1 and look.is_drained, "all are settled")
    ended = {name: _ends(look, f"hall/odd-{number}/log") for number, name in enumerate(ODD)}
    assert {name: {reason for _, reason in ends} for name, ends in ended.items()} == {
        name: reasons for name, (_, reasons) in ODD.items()
    }
    for name, ends in ended.items():
        assert {state for state, _ in ends} <= {"review", "discard"}, name
    assert _ends(look, TOPIC) == {("ticket", "opened")}
    assert gateway.ask("status")["stalled"] == []
    assert gateway.stop() == 0
    assert_sound(gateway.store)
    assert_settled(gateway.store)
    assert assert_one_ticket_each(gateway.store, "desk", hall.server) == 1
    for (event,) in look.rows("SELECT event FROM reviews"):
        json.loads(event)


def _ends(look: Look, topic: str) -> set[tuple[str, str]]:
    """State and reason of every event of the messages of one topic."""
    query = "SELECT e.state, e.reason FROM events AS e JOIN journal AS j ON j.seq = e.seq WHERE j.topic = ?"
    return set(look.rows(query, topic))
