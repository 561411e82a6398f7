"""What a test needs from the machine it runs on, and what happens when that is missing.

On a developer's machine a missing server skips the test; in CI it fails: no test is lost unnoticed.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]

# Debian keeps daemons here; a user's PATH often lacks them.
SYSTEM_PATH = "/usr/local/sbin:/usr/sbin:/sbin"


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() in {"1", "true", "yes"}


def program(name: str) -> str:
    """Path of the program `name`. Without it the test is skipped; in CI it fails."""
    path = shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", os.defpath), SYSTEM_PATH]))
    if path is None:
        missing(f"{name} is not installed (make test names the package)")
    return path


def shared() -> Path:
    """The folder `shared` beside the repository: labelled lines, sample streams. Skips when it is missing."""
    path = REPOSITORY.parent / "shared"
    if not path.is_dir():
        pytest.skip("no folder `shared` beside the repository")
    return path


def missing(reason: str) -> NoReturn:
    """Skip the running test, or fail it in CI."""
    if in_ci():
        pytest.fail(f"{reason}; CI must have it", pytrace=False)
    pytest.skip(reason)
