"""`andon run` as the hardened unit runs it: ready, reading, answering, draining, coming back."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from machine import Machine, python

pytestmark = [pytest.mark.slow, pytest.mark.model, pytest.mark.timeout(240)]

UNIT = "andon.service"
RUN = f"""{python()} -c "from pipeline.cli import main; main()" run /etc/andon/site.yaml"""
# Two readings of the model, on a machine that may be busy.
WITHIN_S = 90

SITE = """
site: test
timezone: UTC
store: {path: /var/lib/andon/andon.db}
sources:
  press: {type: file, path: /srv/press.log, mode: live}
"""
LINES = [
    "2026-03-01 10:00:00 INFO press-4 cycle finished",
    "2026-03-01 10:00:01 ERROR press-4 hydraulic pump failed, code E217",
]


@pytest.fixture(scope="module")
def service(machine: Machine) -> Iterator[Machine]:
    machine.write("/etc/andon/site.yaml", SITE)
    machine.write("/srv/press.log", "\n".join(LINES) + "\n")
    machine.install(RUN)
    machine.run("chown", "-R", "root:andon", "/etc/andon/site.yaml")
    machine.run("chmod", "640", "/etc/andon/site.yaml")
    machine.run("systemctl", "start", UNIT)
    yield machine
    machine.run("systemctl", "stop", UNIT)


def fetched(machine: Machine, path: str) -> str:
    program = f"import urllib.request as r; print(r.urlopen('http://127.0.0.1:9108{path}').read().decode())"
    return machine.run(python(), "-c", program).stdout


def value(machine: Machine, name: str) -> float:
    (line,) = [line for line in fetched(machine, "/metrics").splitlines() if line.startswith(f"{name} ")]
    return float(line.split()[1])


def settled(machine: Machine) -> float:
    """Events with an outcome, over all sources and outcomes."""
    found = [
        line for line in fetched(machine, "/metrics").splitlines() if line.startswith("andon_events_total{")
    ]
    return sum(float(line.split()[-1]) for line in found)


def until(what: str, machine: Machine, ask: Callable[[], Any]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not ask():
        if time.monotonic() > deadline:
            pytest.fail(f"{what} did not come true\n{machine.log()[-4000:]}")
        time.sleep(0.2)


def test_it_is_ready_and_healthy_and_reads_its_source(service: Machine) -> None:
    assert service.show(UNIT, "ActiveState") == "active"
    health = json.loads(fetched(service, "/healthz"))
    assert (health["live"], health["ready"]) == (True, True)
    until("both lines are settled", service, lambda: settled(service) == len(LINES))
    until("nothing is pending", service, lambda: value(service, "andon_pending_events") == 0)


def test_its_log_is_json(service: Machine) -> None:
    said = service.run(
        "journalctl", "-u", UNIT, "--output=cat", "--no-pager", "_COMM=python3.11", check=False
    ).stdout
    events = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    assert "service.ready" in {event["event"] for event in events}
    assert [line for line in said.splitlines() if not line.startswith("{")] == []


def test_a_stop_drains_and_a_start_goes_on_where_it_was(service: Machine) -> None:
    service.run("systemctl", "stop", UNIT)
    assert service.show(UNIT, "Result") == "success"
    service.run("systemctl", "start", UNIT)
    service.write("/tmp/more", "2026-03-01 10:00:02 INFO press-4 cycle finished\n")
    service.run("sh", "-c", "cat /tmp/more >> /srv/press.log")
    until(
        "the new line alone was read",
        service,
        lambda: 'messages_received_total{source="press"} 1.0' in fetched(service, "/metrics"),
    )
    until("nothing is pending", service, lambda: value(service, "andon_pending_events") == 0)


def test_killed_it_comes_back(service: Machine) -> None:
    service.run("systemctl", "kill", "--signal=KILL", UNIT)
    service.until(UNIT, "NRestarts", "1")
    service.until(UNIT, "ActiveState", "active")
    assert json.loads(fetched(service, "/healthz"))["ready"]
