"""The product as it runs in a plant: `andon run SITE.yaml` as a process, killed and started again."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import yaml

from pipeline import control

# Nothing takes that long when all is well; a busy machine may.
PATIENCE_S = 120.0
POLL_S = 0.01
LOG_TAIL = 6000


class Gateway:
    """`andon run` on the site file that `document` is written to, in `folder`.

    The store is `store`, the metrics server is off unless the document names a port, and every process writes
    its log to one file.
    """

    def __init__(self, folder: Path, document: dict[str, Any]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.site = folder / "site.yaml"
        self.store = folder / "andon.db"
        self.log = folder / "andon.log"
        self.metrics_port: int | None = document.get("metrics", {}).get("port")
        whole = {
            "store": {"path": self.store.name, "free_floor_mb": 0},
            "metrics": {"port": None},
            **document,
        }
        self.site.write_text(yaml.safe_dump(whole, allow_unicode=True, sort_keys=False))
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> Self:
        """Start it. It is not ready yet; `until` waits for what the test needs."""
        self._log_start = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        return self

    @property
    def command(self) -> list[str]:
        return [str(Path(sys.prefix) / "bin" / "andon"), "run", str(self.site)]

    def kill(self) -> None:
        """SIGKILL. Without effect when it does not run."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def stop(self) -> int:
        """SIGTERM, and wait for the end of the drain; the exit code."""
        assert self._process is not None
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(PATIENCE_S)
        self._process = None
        return code

    def until(self, condition: Callable[[], Any], what: str) -> None:
        """Return once `condition()` holds; fail with the log's end when it does not, or the process ends."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            if self._process is None or self._process.poll() is not None:
                raise AssertionError(f"the service ended before {what}:\n{self.tail()}")
            if time.monotonic() > deadline:
                raise AssertionError(f"{what} did not come true:\n{self.tail()}")
            time.sleep(POLL_S)

    def logged(self, event: str) -> list[dict[str, Any]]:
        """The log records of one event name, of the process started last."""
        text = self.log.read_bytes()[self._log_start :].decode(errors="replace")
        records = (json.loads(line) for line in text.splitlines(keepends=True) if line.endswith("}\n"))
        return [record for record in records if record.get("event") == event]

    def is_ready(self) -> bool:
        """Whether the process started last has said so."""
        return bool(self.logged("service.ready"))

    def health(self) -> dict[str, Any]:
        """What /healthz answers, whatever its status; empty while nobody answers."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics_port}/healthz", timeout=5) as answer:
                return dict(json.load(answer))
        except urllib.error.HTTPError as error:
            with error:
                return dict(json.load(error))
        except OSError:
            return {}

    def ask(self, command: str, **args: object) -> Any:
        """Send a command to its socket, as the command line does."""
        return control.call(self.store.with_suffix(".sock"), command, **args)

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-LOG_TAIL:] if self.log.exists() else ""

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.kill()
