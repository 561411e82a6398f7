"""The `andon` command of this environment, as a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMMAND = str(Path(sys.prefix) / "bin" / "andon")

# Nothing takes that long when all is well; a busy machine may.
PATIENCE_S = 120.0


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def records(self) -> list[dict[str, Any]]:
        """Its stdout: one JSON object a line, and nothing else."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def record(self) -> dict[str, Any]:
        (only,) = self.records
        return only


def andon(
    *arguments: str | Path, stdin: bytes = b"", cwd: Path | None = None, patience_s: float = PATIENCE_S
) -> Ran:
    """Run it to its end."""
    done = subprocess.run(
        [COMMAND, *map(str, arguments)],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        env={**os.environ, "COLUMNS": "200", "NO_COLOR": "1"},
        timeout=patience_s,
    )
    return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())


def well(*arguments: str | Path, **given: Any) -> Ran:
    """Run it; anything but exit code 0 fails the test with what it said."""
    ran = andon(*arguments, **given)
    assert ran.code == 0, f"andon {' '.join(map(str, arguments))}: exit code {ran.code}\n{ran.out}\n{ran.err}"
    return ran


@contextmanager
def serving(site: Path, socket: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`andon run` in the background, once it answers at its socket; SIGTERM in the end."""
    with (site.parent / "run.log").open("ab") as log:
        process = subprocess.Popen(
            [COMMAND, "run", str(site)], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=site.parent
        )
    try:
        deadline = time.monotonic() + PATIENCE_S
        while not socket.exists():
            assert process.poll() is None and time.monotonic() < deadline, (
                site.parent / "run.log"
            ).read_text()
            time.sleep(0.05)
        yield process
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) == 0, (site.parent / "run.log").read_text()
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
