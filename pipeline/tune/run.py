"""`andon model tune`: formats and a base model in, an adapter and its model card out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch

from pipeline.fields.definition import Labels, Profile
from pipeline.model import registry
from pipeline.tune.generator import Line
from pipeline.tune.grammar import FORMATS, Format, load
from pipeline.tune.network import ALPHA, RANK, Network
from pipeline.tune.samples import Batch, Course
from pipeline.tune.schemas import own
from pipeline.tune.train import Progress, Scores, Settings, measure, train
from pipeline.tune.vocabulary import Vocabulary

HELD_OUT_EVERY = 12  # of the formats by name: they are never taught and say how well unseen ones are read
BATCH_LINES = 24
MEASURED_BATCHES = 16
REFERENCE_LINES = 12
CHECKPOINT = "tune.pt"
# Other lines than those that are taught, even of the same formats.
MEASURING_SEED = 1_000_003


@dataclass(frozen=True, slots=True)
class Outcome:
    adapter: Path
    card: Path
    scores: Scores


def tune(
    base: Path,
    profile: Profile,
    labels: Labels,
    settings: Settings,
    out: Path,
    work: Path,
    corrected: Sequence[Line],
    report: Callable[[Progress], None],
) -> Outcome:
    """Tunes the base model and writes `out` (GGUF) with its card (`.json` beside it).

    `corrected` are lines that people have read, their values under the names of `profile`. A run that was
    stopped goes on from the checkpoint in `work`.
    """
    taught, held_out = split(load())
    tokens, schema = Vocabulary(base), own(profile, labels)
    network = Network(base, settings.seed)
    course = Course(taught, schema, tokens, settings.seed, BATCH_LINES, corrected=corrected)
    train(network, course, settings, work / CHECKPOINT, report)
    unseen = Course(held_out, schema, tokens, MEASURING_SEED, BATCH_LINES)
    scores = measure(network, unseen, MEASURED_BATCHES)
    write(network, out)
    card = out.with_suffix(".json")
    found = _card(base, out, settings, taught, held_out, scores)
    found["data"]["corrected_lines"] = len(corrected)
    found["reference"] = reference(network, unseen)
    card.write_text(json.dumps(found) + "\n", "utf-8")
    return Outcome(out, card, scores)


def split(formats: Sequence[Format]) -> tuple[list[Format], list[Format]]:
    """The formats to teach, and those to measure with."""
    ordered = sorted(formats, key=lambda one: one.name)
    return (
        [one for place, one in enumerate(ordered) if place % HELD_OUT_EVERY],
        [one for place, one in enumerate(ordered) if not place % HELD_OUT_EVERY],
    )


def write(network: Network, path: Path) -> None:
    """The adapter in llama.cpp's form, in half precision."""
    part = path.with_suffix(".part")
    writer = gguf.GGUFWriter(part, "llama")
    writer.add_string("general.type", "adapter")
    writer.add_string("general.name", "andon reader")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", ALPHA)
    for name, matrix in network.adapter().items():
        writer.add_tensor(name, np.ascontiguousarray(matrix, np.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    part.replace(path)


def reference(network: Network, course: Course) -> dict[str, Any]:
    """A few lines with the logits that the tuned network gives: what a merged file is checked against."""
    batch = next(course.batches())
    few = Batch(batch.head, batch.samples[:REFERENCE_LINES])
    with torch.no_grad():
        logits = iter(network.options(few).tolist())
    lines = [
        {
            "tokens": list(one.tokens),
            "positions": list(one.positions),
            "options": [list(options) for options in one.options],
            "logits": [
                [round(value, 3) for value in next(logits)[: len(options)]] for options in one.options
            ],
        }
        for one in few.samples
    ]
    return {"head": list(few.head), "lines": lines}


def _card(
    base: Path,
    out: Path,
    settings: Settings,
    taught: Sequence[Format],
    held_out: Sequence[Format],
    scores: Scores,
) -> dict[str, Any]:
    return {
        "name": "andon reader",
        "made": datetime.now(UTC).date().isoformat(),
        "base": {"file": base.name, "sha256": registry.sha256(base)},
        "adapter": {
            "sha256": registry.sha256(out),
            "bytes": out.stat().st_size,
            "rank": RANK,
            "alpha": ALPHA,
        },
        "data": {
            "lines": settings.steps * BATCH_LINES,
            "formats": len(taught),
            "messages": sum(len(one.messages) for one in taught),
            "formats_sha256": _formats_digest(),
            "held_out": [one.name for one in held_out],
        },
        "settings": asdict(settings) | {"batch_lines": BATCH_LINES},
        "scores_on_held_out_formats": {name: round(value, 4) for name, value in asdict(scores).items()},
    }


def _formats_digest() -> str:
    digest = hashlib.sha256()
    for path in sorted(FORMATS.glob("*.yaml")):
        digest.update(path.read_bytes())
    return digest.hexdigest()
