"""The tuned reader: the adapter shipped with the package, merged into the base model once, checked, and kept.

An adapter applied while reading costs a third of the speed. So its change is added to the base's weights
and the sum is kept as Q8_0 in the state folder, named by the hashes it was made of. Q8_0 because the change
is small: rounded to four bits again it is lost (12 points of the fields read), in half precision it reads
more slowly. The embedding, which the adapter does not touch, stays as it is.

A merged file is used when it answers as the adapter did where it was tuned: the model card carries some lines
with those logits, and the two must correlate.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import structlog

from pipeline.model.options import ModelConfig
from pipeline.model.registry import ModelFile, sha256
from pipeline.model.runtime import Runtime
from schemas.errors import ModelMissing

SHIPPED = Path(__file__).parent / "data" / "reader.gguf"
# Between the tuned network in half precision and the merged file in Q8_0 0.999 is usual; a matrix in the
# wrong place gives 0.96 and less.
CORRELATION_MIN = 0.99
FOLDER_VARIABLE = "STATE_DIRECTORY"  # systemd's, from StateDirectory= of the unit

log = structlog.get_logger("andon.model")


@dataclass(frozen=True, slots=True)
class Adapter:
    """An adapter file with its model card."""

    path: Path
    card: Mapping[str, Any]

    @classmethod
    def shipped(cls, path: Path = SHIPPED) -> Adapter | None:
        """The package's adapter. None when there is none, ModelMissing when it is not what its card says."""
        card = path.with_suffix(".json")
        if not path.is_file() or not card.is_file():
            return None
        adapter = cls(path, json.loads(card.read_text("utf-8")))
        if sha256(path) != adapter.card["adapter"]["sha256"]:
            raise ModelMissing(f"{path} is not the file its model card describes; install andon anew")
        return adapter

    def fits(self, base: ModelFile) -> bool:
        """Whether it was tuned on this very file: on any other its change is noise."""
        return bool(self.card["base"]["sha256"] == base.sha256)

    @property
    def digest(self) -> str:
        return str(self.card["adapter"]["sha256"])


def merged(adapter: Adapter, base: ModelFile, config: ModelConfig) -> Path:
    """The merged file, made now unless it is there. Raises ModelMissing when it can be kept nowhere."""
    path = folder(config) / f"reader-{base.sha256[:12]}-{adapter.digest[:12]}.gguf"
    if path.is_file():
        return path
    log.info("model.merging", adapter=adapter.digest[:12], into=str(path))
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix="merging-") as work:
            part = Path(work) / path.name
            merge(adapter.path, base.path, part)
            part.replace(path)
    except OSError as error:
        raise ModelMissing(
            f"the tuned model cannot be kept in {path.parent} ({error.strerror or error}; it takes "
            f"{base.size * 3 // 2 // 2**20} MB); state another model.folder"
        ) from error
    return path


def folder(config: ModelConfig) -> Path:
    """Where merged models are kept: `model.folder`, else the service's state folder, else the user's
    cache."""
    if config.folder is not None:
        return Path(config.folder).expanduser()
    if state := os.environ.get(FOLDER_VARIABLE):
        return Path(state.split(":")[0]) / "models"
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "andon" / "models"


def merge(adapter: Path, base: Path, out: Path) -> None:
    """Writes the base model with the adapter's change in its weights. Tensor by tensor: memory stays
    small."""
    import gguf

    source = gguf.GGUFReader(base)
    changes = _changes(gguf.GGUFReader(adapter))
    writer = gguf.GGUFWriter(out, "llama", use_temp_file=True)
    _copy_header(source, writer)
    for tensor in source.tensors:
        change = changes.pop(tensor.name, None)
        if change is None:
            writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
            continue
        a, b, scale = change
        weights = gguf.quants.dequantize(tensor.data, tensor.tensor_type) + scale * (b @ a)
        kind = gguf.GGMLQuantizationType.Q8_0
        writer.add_tensor(tensor.name, gguf.quants.quantize(weights, kind), raw_dtype=kind)
    if changes:
        raise ModelMissing(f"{adapter} changes what {base} does not have: {', '.join(sorted(changes)[:3])}")
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _changes(adapter: Any) -> dict[str, tuple[np.ndarray, np.ndarray, float]]:
    """By tensor: the two matrices of its change, and what their product is multiplied by."""
    alpha = float(adapter.fields["adapter.lora.alpha"].contents())
    parts = {tensor.name: np.asarray(tensor.data, np.float32) for tensor in adapter.tensors}
    found = {}
    for name in [name.removesuffix(".lora_a") for name in parts if name.endswith(".lora_a")]:
        a, b = parts[f"{name}.lora_a"], parts[f"{name}.lora_b"]
        found[name] = (a, b, alpha / a.shape[0])
    return found


def _copy_header(source: Any, writer: Any) -> None:
    import gguf

    for field in source.fields.values():
        if field.name.startswith("GGUF.") or field.name == "general.architecture":
            continue
        kind = field.types[0]
        value: Any = field.contents()
        if field.name == "general.file_type":
            value = int(gguf.LlamaFileType.MOSTLY_Q8_0)
        writer.add_key_value(
            field.name, value, kind, sub_type=field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        )


def check(adapter: Adapter, runtime: Runtime) -> float:
    """The correlation between the card's logits and the runtime's. Raises ModelMissing below the minimum."""
    expected, given = zip(*_compared(adapter.card["reference"], runtime), strict=True)
    correlation = float(np.corrcoef(np.concatenate(expected), np.concatenate(given))[0, 1])
    if not correlation >= CORRELATION_MIN:
        raise ModelMissing(
            f"the merged model does not answer as the adapter did (correlation {correlation:.3f}, at least "
            f"{CORRELATION_MIN}); delete it and let it be made anew, or set model.enabled: false"
        )
    log.info("model.checked", correlation=round(correlation, 4))
    return correlation


def _compared(reference: Mapping[str, Any], runtime: Runtime) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """For each ask the logits of its options, expected and given, each less their mean: a shared offset means
    nothing.
    """
    for line in reference["lines"]:
        every = sorted({token for options in line["options"] for token in options})
        rows = runtime.score(reference["head"], line["tokens"], line["positions"], every)
        for options, logits, row in zip(line["options"], line["logits"], rows, strict=True):
            expected = np.asarray(logits)
            given = np.asarray([row[every.index(token)] for token in options])
            yield expected - expected.mean(), given - given.mean()
