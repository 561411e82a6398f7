"""The unit file by systemd's own judgement: nothing unknown in it, exposure of at most 1.5."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.service import DRAIN_S

# The exposure that is promised, in systemd's tenths.
EXPOSURE_MAX = 15


@pytest.fixture
def unit(repository: Path, tmp_path: Path) -> Path:
    """A copy of the unit whose program exists on this machine; everything else is as shipped."""
    text = (repository / "deploy" / "andon.service").read_text()
    changed, n = re.subn(r"^ExecStart=\S+", "ExecStart=/bin/true", text, flags=re.MULTILINE)
    assert n == 1
    path = tmp_path / "andon.service"
    path.write_text(changed)
    return path


@pytest.fixture
def analyze(require: Callable[[str], str]) -> Callable[..., subprocess.CompletedProcess[str]]:
    program = require("systemd-analyze")

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=60)

    return run


def seconds(text: str, name: str) -> float:
    found = re.search(rf"^{name}=(\d+)$", text, flags=re.MULTILINE)
    assert found, f"{name} is not a plain number of seconds in the unit"
    return float(found[1])


def test_verify_says_nothing(unit: Path, analyze: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = analyze("verify", "--recursive-errors=no", "--man=no", unit)
    # An unknown key is only a line on stderr: the exit code stays 0.
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_verify_would_notice(unit: Path, analyze: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    unit.write_text(unit.read_text().replace("[Service]", "[Service]\nProtectEverything=yes"))
    assert "ProtectEverything" in analyze("verify", "--recursive-errors=no", unit).stderr


def test_exposure_is_low(unit: Path, analyze: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = analyze("security", "--offline=true", f"--threshold={EXPOSURE_MAX}", "--json=short", unit)
    assert done.returncode == 0, done.stdout + done.stderr
    assert {item["name"] for item in json.loads(done.stdout)} > {"PrivateNetwork=", "UMask="}


def test_the_stop_is_longer_than_the_drain(unit: Path) -> None:
    assert seconds(unit.read_text(), "TimeoutStopSec") > DRAIN_S + 8, (
        "no room for one inference after the drain"
    )


@pytest.mark.parametrize(
    "line",
    [
        "Type=notify",
        "NotifyAccess=main",
        "Restart=always",
        "StartLimitIntervalSec=0",
        "User=andon",
        "StateDirectory=andon",
        "MemoryDenyWriteExecute=yes",
        "MemorySwapMax=0",
    ],
)
def test_what_the_promises_rest_on_is_set(unit: Path, line: str) -> None:
    assert line in unit.read_text().splitlines()
