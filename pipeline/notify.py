"""Tell systemd how the service is: sd_notify(3) over a unix datagram socket, and the watchdog.

Without NOTIFY_SOCKET (started by hand, or by something else than systemd) everything here does nothing.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping, MutableMapping

import structlog

from schemas.errors import AndonError

log = structlog.get_logger(__name__)

# A datagram waits here only when systemd's queue is full. Longer would stall the event loop for a mere
# status.
SEND_S = 0.5

# systemd shows one line; it refuses a datagram of more than a few kilobytes.
STATUS_CHARS = 500


class Notifier:
    """The service's end of the notification socket.

    `watchdog_s` is the time within which systemd wants to hear from us, None when it does not watch. No
    method raises for a socket that cannot be reached: a service manager that is gone is no reason to stop
    working. `send` tells.
    """

    def __init__(self, address: str | None = None, watchdog_s: float | None = None) -> None:
        self.watchdog_s = watchdog_s
        self._address = None if address is None else _path(address)

    @classmethod
    def from_environment(cls, environ: MutableMapping[str, str] = os.environ) -> Notifier:
        """As systemd asks through NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID.

        Takes them out of the environment, so that no child process speaks in our name. Raises AndonError when
        they cannot be understood: going on in silence would end in systemd killing a healthy service.
        """
        asked = {name: environ.pop(name, "") for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID")}
        return cls(asked["NOTIFY_SOCKET"] or None, _watchdog_s(asked))

    def ready(self, status: str = "") -> bool:
        """Started: systemd lets what waits for us go on."""
        return self.send("READY=1", status)

    def status(self, status: str) -> bool:
        """One line for `systemctl status`."""
        return self.send(status=status)

    def reloading(self) -> bool:
        """A reload has begun; `ready` ends it."""
        return self.send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self, status: str = "") -> bool:
        """The drain has begun."""
        return self.send("STOPPING=1", status)

    def watchdog(self) -> bool:
        """Alive. Only a loop that turns, with no stage stalled, may say so: an idle plant is healthy."""
        return self.send("WATCHDOG=1")

    def send(self, state: str = "", status: str = "") -> bool:
        """Send one datagram. True when it was handed to systemd, or when there is none to hand it to."""
        if self._address is None:
            return True
        lines = [state] if state else []
        if status:
            lines.append(
                "STATUS=" + " ".join(status.split())[:STATUS_CHARS]
            )  # a newline would begin a new field
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sock:
                sock.settimeout(SEND_S)
                sock.sendto("\n".join(lines).encode("utf-8", "replace"), self._address)
        except OSError as error:
            log.warning("systemd.unreachable", state=state, error=str(error))
            return False
        return True


def _path(address: str) -> str:
    """A unix socket's address from NOTIFY_SOCKET; a leading @ is the abstract namespace."""
    if address.startswith("@") and len(address) > 1:
        return "\0" + address[1:]
    if address.startswith("/"):
        return address
    raise AndonError(f"NOTIFY_SOCKET={address!r} is no unix socket: a path or @name was expected")


def _watchdog_s(asked: Mapping[str, str]) -> float | None:
    """The watchdog's period; None when it is off or meant for another process."""
    if not asked["WATCHDOG_USEC"]:
        return None
    try:
        usec = int(asked["WATCHDOG_USEC"])
        pid = int(asked["WATCHDOG_PID"] or os.getpid())
    except ValueError as error:
        raise AndonError(f"WATCHDOG_USEC or WATCHDOG_PID is no number: {error}") from error
    if usec <= 0:
        raise AndonError(f"WATCHDOG_USEC={usec} is no period")
    return usec / 1e6 if pid == os.getpid() else None
