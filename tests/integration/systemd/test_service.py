"""The unit under a real systemd: readiness, watchdog, stop, restarts, hardening that lets the model run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from machine import SOURCE, Machine, python

pytestmark = [pytest.mark.slow, pytest.mark.model, pytest.mark.timeout(180)]

STATE = "/var/lib/andon"
BEACON = f"{python()} {SOURCE}/tests/integration/systemd/beacon.py {STATE}"
UNIT = "andon.service"


@pytest.fixture
def service(machine: Machine) -> Iterator[Machine]:
    """The machine with the unit running the beacon, its times shortened."""
    machine.install(BEACON, "WatchdogSec=3\nTimeoutStopSec=5\nRestartSec=100ms")
    machine.run("systemctl", "start", UNIT)
    yield machine
    machine.run("rm", "-f", f"{STATE}/stalled")
    machine.run("systemctl", "stop", UNIT)
    machine.run("systemctl", "reset-failed", UNIT, check=False)


def test_starts_hardened_as_its_own_user_and_reads_the_model(service: Machine) -> None:
    assert service.show(UNIT, "ActiveState") == "active"
    assert service.show(UNIT, "StatusText").endswith("is loaded")
    assert service.run("stat", "-c", "%U:%G %a", f"{STATE}/written").stdout == "andon:andon 600\n"
    assert service.run("stat", "-c", "%U:%G %a", "/etc/andon/credentials").stdout == "root:root 700\n"
    status = service.run("cat", f"/proc/{service.show(UNIT, 'MainPID')}/status").stdout
    assert "NoNewPrivs:\t1" in status
    assert "Seccomp:\t2" in status
    assert "CapEff:\t0000000000000000" in status


def test_a_stop_is_answered_and_ends_well(service: Machine) -> None:
    service.run("systemctl", "stop", UNIT)
    assert service.show(UNIT, "Result") == "success"
    assert service.show(UNIT, "ExecMainStatus") == "0"


def test_a_stalled_stage_is_killed_by_the_watchdog_and_started_again(service: Machine) -> None:
    before = service.show(UNIT, "MainPID")
    service.run("touch", f"{STATE}/stalled")
    service.until(UNIT, "NRestarts", "1")
    service.run("rm", "-f", f"{STATE}/stalled")
    service.until(UNIT, "ActiveState", "active")
    assert service.show(UNIT, "MainPID") != before
    log = service.log()
    assert "Watchdog timeout" in log
    assert "Fatal Python error: Aborted" in log, "the journal does not tell where it hung"


def test_a_killed_service_comes_back_however_often(service: Machine) -> None:
    # Debian's default gives up at the sixth start within ten seconds.
    for kills in range(1, 8):
        service.run("systemctl", "kill", "--signal=KILL", UNIT)
        service.until(UNIT, "NRestarts", str(kills))
        service.until(UNIT, "ActiveState", "active")
