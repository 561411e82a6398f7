"""The broker that a bench talks to: a real Mosquitto when there is one, else the embedded one.

Each in a process of its own, so that it takes no time of what is measured but that of the machine.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipeline.demo.broker import EmbeddedBroker, free_port
from schemas.errors import AndonError

# Either starts within a second; a busy machine may take its time.
START_S = 15.0
STOP_S = 10.0


@dataclass(frozen=True, slots=True)
class Broker:
    """Where it listens, and which one it is. Only Mosquitto speaks MQTT 5 and keeps the messages of a session
    that is away."""

    port: int
    embedded: bool

    @property
    def mqtt5(self) -> bool:
        return not self.embedded

    @property
    def keeps(self) -> bool:
        return not self.embedded


@contextlib.contextmanager
def running(program: str | None) -> Iterator[Broker]:
    """Mosquitto by its `program`, without one the embedded broker, on a free loopback port, gone afterwards.

    Raises AndonError when it does not start.
    """
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="andon-bench-") as folder:
        if program is None:
            broker = Broker(port, embedded=True)
            command = [sys.executable, "-m", "pipeline.bench.broker", str(port)]
        else:
            broker = Broker(port, embedded=False)
            command = [program, "-c", str(_configuration(Path(folder), port))]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _await(process, broker)
            yield broker
        finally:
            process.terminate()
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def mosquitto() -> str | None:
    """Its program; Debian keeps it outside of a user's PATH."""
    return shutil.which("mosquitto") or shutil.which("mosquitto", path="/usr/sbin:/usr/local/sbin")


def _configuration(folder: Path, port: int) -> Path:
    """Nothing is dropped, and the subscriber says how many messages are under way (Receive Maximum)."""
    file = folder / "mosquitto.conf"
    text = [
        "persistence false",
        "allow_anonymous true",
        "max_queued_messages 0",
        "max_inflight_messages 0",
        f"listener {port} 127.0.0.1",
    ]
    if os.geteuid() == 0:
        text.insert(0, "user root")
    file.write_text("\n".join(text) + "\n")
    return file


def _await(process: subprocess.Popen[bytes], broker: Broker) -> None:
    deadline = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", broker.port), 1):
            return
        time.sleep(0.05)
    name = "the embedded broker" if broker.embedded else "Mosquitto"
    raise AndonError(f"bench: {name} does not start on port {broker.port}")


def main() -> None:
    """Serve the embedded broker on the given port until SIGTERM."""
    with EmbeddedBroker(int(sys.argv[1])):
        signal.sigwait({signal.SIGTERM, signal.SIGINT})


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    main()
