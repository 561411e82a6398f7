"""A fault that comes back within seconds is two alarms and two tickets, killed in between or not.

The lines come over a real broker; rules and a code decide, so that no model is needed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from accounts import Look, assert_one_ticket_each, assert_settled, assert_sound
from demo_site import http_sink
from gateway import Gateway
from mosquitto import Mosquitto
from slow_tickets import SlowTicketServer

pytestmark = [pytest.mark.broker, pytest.mark.timeout(120)]

TOPIC = "hall/press-4/log"
FAULT = b"2026-03-02 06:14:0%d FAULT PH-31 hydraulic pressure 92.1 bar, minimum is 120"
CLEAR = b"2026-03-02 06:14:0%d PH-31 gone, hydraulic pressure back at 181.0 bar"

RULES = [
    {"id": "back", "when": {"text": "PH-31 gone"}, "clears": "PH-31"},
    {"id": "pressure-low", "when": {"code": ["PH-31"]}, "severity": "error", "action": "call_mechanic"},
]


class Press:
    """One press, its gateway and its ticket system. `kill` says after which lines the gateway is killed."""

    def __init__(self, folder: Path, broker: Mosquitto, server: SlowTicketServer) -> None:
        source = {
            "type": "mqtt",
            "port": broker.port,
            "topics": ["hall/+/log"],
            "topic_template": "hall/{asset}/log",
            "mode": "live",
        }
        document = {
            "model": {"enabled": False},
            "sources": {"presses": source},
            "rules": RULES,
            "sinks": {"desk": http_sink(server.url, idempotent=False)},
            "routes": [{"id": "all", "sink": "desk"}],
        }
        self.broker, self.server = broker, server
        self.gateway = Gateway(folder, document)
        self.look = Look(self.gateway.store)

    def start(self) -> None:
        self.gateway.start()
        self.gateway.until(lambda: self.gateway.logged("source.connected"), "the source is connected")

    def say(self, line: bytes) -> None:
        """Publish a line and wait until it is accepted: the next one comes after it."""
        before = self.look.accepted
        self.broker.publish([(TOPIC, line)])
        self.gateway.until(lambda: self.look.accepted > before, "the line is accepted")

    def kill(self) -> None:
        self.gateway.kill()
        self.start()

    def end(self) -> list[tuple[Any, ...]]:
        """Drain, check the accounts; the openings: number, opened and cleared at which message, ticket."""
        self.gateway.until(lambda: self.look.is_drained, "everything is settled and sent")
        assert self.gateway.stop() == 0
        assert_sound(self.gateway.store)
        assert_settled(self.gateway.store)
        assert_one_ticket_each(self.gateway.store, "desk", self.server)
        return self.look.rows(
            "SELECT number, opened_seq, cleared_seq, occurrences, ticket_key FROM openings ORDER BY number"
        )


@pytest.fixture
def press(tmp_path: Path) -> Iterator[Press]:
    with ExitStack() as stack:
        broker = stack.enter_context(Mosquitto(tmp_path / "broker"))
        server = SlowTicketServer()
        stack.enter_context(server)
        made = Press(tmp_path / "gateway", broker, server)
        stack.callback(made.gateway.kill)
        made.start()
        made.gateway.until(lambda: made.gateway.logged("source.subscribed"), "the source is subscribed")
        yield made


def lines() -> list[bytes]:
    """Fault, clear, fault again, clear again: one second apart by the machine's clock, at once by ours."""
    return [FAULT % 1, CLEAR % 2, FAULT % 3, CLEAR % 4]


def causes(server: SlowTicketServer) -> Mapping[str, str]:
    return {key: made[0]["body"]["cause"] for key, made in server.tickets.items()}


@pytest.mark.parametrize("kills", [(), (1,), (2,), (3,), (1, 2, 3)], ids=str)
def test_fault_clear_fault_is_two_openings_and_two_tickets(press: Press, kills: tuple[int, ...]) -> None:
    for number, line in enumerate(lines(), start=1):
        press.say(line)
        if number in kills:
            press.kill()
    openings = press.end()
    # A redelivered line is journaled once more: positions are those of the originals all the same.
    assert [(number, occurrences) for number, _, _, occurrences, _ in openings] == [(1, 1), (2, 1)]
    (_, first, first_cleared, *_), (_, second, second_cleared, *_) = openings
    assert first < first_cleared < second < second_cleared
    assert len({key for *_, key in openings}) == 2
    assert causes(press.server) == {key: "PH-31" for *_, key in openings}


def test_a_fault_repeated_over_a_kill_is_one_opening(press: Press) -> None:
    press.say(FAULT % 1)
    press.kill()
    press.say(FAULT % 2)
    press.say(FAULT % 3)
    press.kill()
    press.say(CLEAR % 4)
    openings = press.end()
    assert [(number, occurrences) for number, _, _, occurrences, _ in openings] == [(1, 3)]
    assert openings[0][2] is not None
    assert len(press.server.created) == 1


def test_all_in_one_burst_while_the_gateway_is_down(press: Press) -> None:
    press.gateway.kill()
    press.broker.publish([(TOPIC, line) for line in lines()])
    press.start()
    press.gateway.until(lambda: press.look.accepted >= 4, "the lines are accepted")
    openings = press.end()
    assert [(number, occurrences) for number, _, _, occurrences, _ in openings] == [(1, 1), (2, 1)]
    assert all(cleared is not None for _, _, cleared, _, _ in openings)
