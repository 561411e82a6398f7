"""What every test may ask for: servers and tools of the machine, and the shared data set.

Modules in tests/support can be imported by name (see `pythonpath` in pyproject.toml).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import needs
import pytest


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
