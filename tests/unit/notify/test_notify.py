"""sd_notify over real datagram sockets, and whom the watchdog is meant for."""

from __future__ import annotations

import os
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.notify import SEND_S, STATUS_CHARS, Notifier
from schemas.errors import AndonError


class Systemd:
    """The other end of the socket: what systemd would receive."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.socket.bind("\0" + address[1:] if address.startswith("@") else address)

    def received(self) -> list[str]:
        messages = []
        while True:
            try:
                messages.append(self.socket.recv(65_536).decode())
            except BlockingIOError:
                return messages


@pytest.fixture(params=["path", "abstract"])
def systemd(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Systemd]:
    abstract = request.param == "abstract"
    peer = Systemd(f"@andon-test-{uuid.uuid4()}" if abstract else str(tmp_path / "notify"))
    yield peer
    peer.socket.close()


def test_each_message_is_one_datagram_in_systemds_own_words(systemd: Systemd) -> None:
    notifier = Notifier.from_environment({"NOTIFY_SOCKET": systemd.address})
    assert notifier.ready("loading the model")
    assert notifier.status("12 lines/s")
    assert notifier.watchdog()
    assert notifier.reloading()
    assert notifier.stopping("draining")
    received = systemd.received()
    assert received[0] == "READY=1\nSTATUS=loading the model"
    assert received[1:3] == ["STATUS=12 lines/s", "WATCHDOG=1"]
    assert received[3].startswith("RELOADING=1\nMONOTONIC_USEC=")
    assert int(received[3].rpartition("=")[2]) > 0
    assert received[4] == "STOPPING=1\nSTATUS=draining"


@pytest.mark.parametrize(
    "text", ["one\nREADY=1", "a\r\nWATCHDOG=1", "tab\tand\x0bmore", "\udc80 surrogate", "故障 " * 500]
)
def test_a_status_is_one_line_whatever_stands_in_it(systemd: Systemd, text: str) -> None:
    assert Notifier(systemd.address).status(text)
    (message,) = systemd.received()
    assert message.startswith("STATUS=")
    assert len(message.splitlines()) == 1
    assert len(message) <= len("STATUS=") + STATUS_CHARS


def test_the_environment_is_taken_so_that_children_do_not_speak_for_us(systemd: Systemd) -> None:
    environ = {
        "NOTIFY_SOCKET": systemd.address,
        "WATCHDOG_USEC": "30000000",
        "WATCHDOG_PID": str(os.getpid()),
        "HOME": "/",
    }
    notifier = Notifier.from_environment(environ)
    assert environ == {"HOME": "/"}
    assert notifier.watchdog_s == 30.0


@pytest.mark.parametrize(
    ("usec", "pid", "expected"),
    [
        ("", "", None),
        ("", str(os.getpid()), None),
        ("500000", "", 0.5),
        ("500000", str(os.getpid()), 0.5),
        ("500000", str(os.getpid() + 1), None),
    ],
)
def test_the_watchdog_is_on_only_when_it_is_meant_for_us(usec: str, pid: str, expected: float | None) -> None:
    assert Notifier.from_environment({"WATCHDOG_USEC": usec, "WATCHDOG_PID": pid}).watchdog_s == expected


@pytest.mark.parametrize(
    "environ",
    [
        {"NOTIFY_SOCKET": "vsock:2:1234"},
        {"NOTIFY_SOCKET": "relative/path"},
        {"NOTIFY_SOCKET": "@"},
        {"WATCHDOG_USEC": "soon"},
        {"WATCHDOG_USEC": "0"},
        {"WATCHDOG_USEC": "-5"},
        {"WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "me"},
    ],
)
def test_what_cannot_be_understood_is_refused_by_name(environ: dict[str, str]) -> None:
    named = next(iter(environ))
    with pytest.raises(AndonError, match=named):
        Notifier.from_environment(environ)


def test_without_systemd_everything_does_nothing() -> None:
    notifier = Notifier.from_environment({})
    assert notifier.ready()
    assert notifier.watchdog()
    assert notifier.watchdog_s is None


def test_a_socket_that_is_gone_does_not_stop_the_service(tmp_path: Path) -> None:
    assert not Notifier(str(tmp_path / "nobody")).ready()


def test_a_full_socket_is_given_up_after_a_bounded_time(tmp_path: Path) -> None:
    peer = Systemd(str(tmp_path / "notify"))
    notifier = Notifier(peer.address)
    sent = 0
    while notifier.watchdog():
        sent += 1
        assert sent < 10_000, "the queue of a unix datagram socket is shorter than this"
    assert len(peer.received()) == sent
    assert SEND_S <= 1, "a send blocks the event loop: it may never take longer than a ping's period"
    peer.socket.close()
