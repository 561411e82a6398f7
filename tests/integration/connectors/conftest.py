"""Real brokers for the connectors' tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from certificates import Certificates, make_certificates
from mosquitto import Mosquitto


@pytest.fixture
def mosquitto(tmp_path: Path) -> Iterator[Mosquitto]:
    """A broker that keeps its sessions over a crash."""
    with Mosquitto(tmp_path / "broker") as broker:
        yield broker


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("certificates"))
