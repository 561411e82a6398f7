"""A real Mosquitto for a test: its own folder, a free loopback port, started, killed, started again."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

import needs
import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion
from ports import free_port

# It starts in some milliseconds; a busy machine may take its time.
START_S = 10.0


class Mosquitto:
    """A broker on `port`. `lines` are added to its configuration.

    With `persist` sessions and messages are written at once and survive `kill()`; without it the broker
    forgets everything when it stops.
    """

    def __init__(
        self,
        folder: Path,
        *,
        lines: Sequence[str] = (),
        listener: Sequence[str] = (),
        persist: bool = True,
        passwords: dict[str, str] | None = None,
    ) -> None:
        self.binary = needs.program("mosquitto")
        self.folder = folder
        self.port = free_port()
        self.log = folder / "mosquitto.log"
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)
        self.configure([*self._persistence(persist), *self._access(passwords), *lines], listener)

    def configure(self, lines: Iterable[str], listener: Iterable[str] = ()) -> None:
        """Write the configuration anew; it takes effect at the next start."""
        config = ["user root", "max_queued_messages 0", "log_type all", *lines]
        config += [f"listener {self.port} 127.0.0.1", *listener]
        (self.folder / "mosquitto.conf").write_text("\n".join(config) + "\n")

    def _persistence(self, persist: bool) -> list[str]:
        if not persist:
            return ["persistence false"]
        return [
            "persistence true",
            f"persistence_location {self.folder}/",
            "autosave_interval 1",
            "autosave_on_changes true",
        ]

    def _access(self, passwords: dict[str, str] | None) -> list[str]:
        if passwords is None:
            return ["allow_anonymous true"]
        file = self.folder / "passwords"
        file.touch()
        for user, password in passwords.items():
            subprocess.run(
                [needs.program("mosquitto_passwd"), "-b", str(file), user, password],
                check=True,
                capture_output=True,
            )
        return ["allow_anonymous false", f"password_file {file}"]

    def start(self) -> Self:
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [self.binary, "-c", str(self.folder / "mosquitto.conf")], stdout=log, stderr=log
            )
        deadline = time.monotonic() + START_S
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return self
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"mosquitto does not start:\n{self.log.read_text()}")
            time.sleep(0.02)

    def stop(self) -> None:
        """SIGTERM: sessions are written."""
        self._end(kill=False)

    def kill(self) -> None:
        """SIGKILL: what was not written is lost."""
        self._end(kill=True)

    def _end(self, *, kill: bool) -> None:
        if self._process is None:
            return
        if kill:
            self._process.kill()
        else:
            self._process.terminate()
        self._process.wait(START_S)
        self._process = None

    def publish(
        self,
        messages: Iterable[tuple[str, bytes]],
        *,
        qos: int = 1,
        retain: bool = False,
        user: tuple[str, str] | None = None,
    ) -> None:
        """Publish all, in order, and return once the broker has confirmed them. Blocks."""
        client = paho.Client(CallbackAPIVersion.VERSION2, protocol=paho.MQTTv311)
        if user is not None:
            client.username_pw_set(*user)
        connected = threading.Event()
        client.on_connect = lambda *_: connected.set()
        client.connect("127.0.0.1", self.port)
        client.loop_start()
        try:
            assert connected.wait(START_S)
            for info in [client.publish(topic, payload, qos, retain) for topic, payload in messages]:
                info.wait_for_publish(START_S)
                assert info.is_published()
        finally:
            client.disconnect()
            client.loop_stop()

    def logged(self, text: str) -> int:
        """How often the broker has logged this, as in "Received PUBACK from"."""
        return self.log.read_text(errors="replace").count(text)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()
