"""One booted machine for the tests of a file."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from machine import Machine, booted


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    with booted(tmp_path_factory.mktemp("machine")) as machine:
        yield machine
