"""What every test may ask for: servers and tools of the machine, and the shared data set.

Modules in tests/support can be imported by name (see `pythonpath` in pyproject.toml).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import needs
import pytest
from hypothesis import settings

# The machines are noisy: how long an example takes says nothing. In CI the same examples every time, so
# that a red run is about the change in hand; everywhere else new ones.
settings.register_profile("andon", deadline=None, derandomize=os.environ.get("CI") == "true")
settings.load_profile("andon")


@pytest.fixture(scope="session")
def require() -> Callable[[str], str]:
    """`require("mosquitto")` returns the program's path; without it the test skips here and fails in CI."""
    return needs.program


@pytest.fixture(scope="session")
def repository() -> Path:
    """The repository's root."""
    return needs.REPOSITORY


@pytest.fixture(scope="session")
def shared() -> Path:
    """The shared data set beside the repository; skips where there is none."""
    return needs.shared()
