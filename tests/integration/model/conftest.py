"""The real default model, loaded once a session."""

from __future__ import annotations

from collections.abc import Iterator

import needs
import pytest

from pipeline.model.llama import LlamaRuntime
from pipeline.model.options import ModelConfig
from pipeline.model.registry import locate
from schemas.errors import ModelMissing

CONFIG = ModelConfig(threads=2)


@pytest.fixture(scope="session")
def runtime() -> Iterator[LlamaRuntime]:
    try:
        locate(CONFIG)
    except ModelMissing as error:
        needs.missing(str(error))
    runtime = LlamaRuntime.open(CONFIG)
    yield runtime
    runtime.close()
