"""A training run: so many steps, the same for the same seed, stopped and resumed at any of them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

# Read once, when torch's OpenMP loads: threads that spin while they wait starve a second process on two
# cores.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import torch
from torch.nn import functional

from pipeline.tune.network import Network
from pipeline.tune.samples import Batch, Course

SAVE_EVERY_S = 300
# Most rows are none of the fields: left alone, a run learns for a hundred steps to say nothing but
# that. What it shifts, the reader's weights take back.
VALUE_WEIGHT = 2.0
BETAS, WEIGHT_DECAY, NORM_MAX = (0.9, 0.98), 0.01, 1.0
LAST_RATE = 0.03  # of the highest learning rate, at the end


@dataclass(frozen=True, slots=True)
class Settings:
    """What a run is: with the course's seed, all that its outcome depends on."""

    steps: int = 1000
    rate: float = 1e-3
    warm_up: int = 20
    seed: int = 7
    threads: int = 2


@dataclass(frozen=True, slots=True)
class Scores:
    """Loss, and the share of rows, of rows with a value, and of decisions that are right."""

    loss: float
    rows: float
    values: float
    decisions: float


@dataclass(frozen=True, slots=True)
class Progress:
    step: int
    steps: int
    recent: Scores
    """The mean of the last steps."""
    seconds_left: float


def train(
    network: Network,
    course: Course,
    settings: Settings,
    checkpoint: Path,
    report: Callable[[Progress], None],
    save_every_s: float = SAVE_EVERY_S,
) -> None:
    """Tunes the network's adapter. Goes on from `checkpoint` when it is of the same settings, and keeps it
    up to date, so that a run that was stopped loses five minutes at most.
    """
    torch.set_num_threads(settings.threads)
    parameters = list(network.parameters())
    optimizer = torch.optim.AdamW(parameters, lr=settings.rate, betas=BETAS, weight_decay=WEIGHT_DECAY)
    begin = _resume(network, optimizer, settings, checkpoint)
    saved = started = time.monotonic()
    recent: list[Scores] = []
    for step, batch in zip(range(begin, settings.steps), course.batches(begin), strict=False):
        for group in optimizer.param_groups:
            group["lr"] = _rate(step, settings)
        logits = network.options(batch)
        loss = _loss(batch, logits)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(parameters, NORM_MAX)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        recent = [*recent[-19:], scores(batch, logits.detach())]
        if time.monotonic() - saved >= save_every_s or step + 1 == settings.steps:
            _save(network, optimizer, settings, step + 1, checkpoint)
            saved = time.monotonic()
        left = (time.monotonic() - started) / (step + 1 - begin) * (settings.steps - step - 1)
        report(Progress(step + 1, settings.steps, mean(recent), left))


def measure(network: Network, course: Course, count: int) -> Scores:
    """Scores over the first `count` batches of a course that was not taught."""
    with torch.no_grad():
        return mean(
            [
                scores(batch, network.options(batch))
                for batch, _ in zip(course.batches(), range(count), strict=False)
            ]
        )


def _loss(batch: Batch, logits: torch.Tensor) -> torch.Tensor:
    """Cross-entropy, rows with a value counted double."""
    answers = _answers(batch)
    weights = torch.where(_decisions(batch) | (answers == 0), 1.0, VALUE_WEIGHT)
    each = functional.cross_entropy(logits, answers, reduction="none")
    return (each * weights).sum() / weights.sum()


def scores(batch: Batch, logits: torch.Tensor) -> Scores:
    answers = _answers(batch)
    right = (logits.argmax(-1) == answers).float()
    # A row's first option is "none"; decisions are the last rows of a line and have no such option.
    decision = _decisions(batch)
    value = ~decision & (answers != 0)
    return Scores(
        float(functional.cross_entropy(logits, answers)),
        *(_share(right, chosen) for chosen in (~decision, value, decision)),
    )


def mean(listed: Sequence[Scores]) -> Scores:
    rows = [tuple(asdict(one).values()) for one in listed]
    return Scores(*(sum(column) / len(column) for column in zip(*rows, strict=True)))


def _share(right: torch.Tensor, chosen: torch.Tensor) -> float:
    return float(right[chosen].mean()) if bool(chosen.any()) else 1.0


def _answers(batch: Batch) -> torch.Tensor:
    return torch.tensor([answer for one in batch.samples for answer in one.answers])


def _decisions(batch: Batch) -> torch.Tensor:
    return torch.tensor([ask in one.decisions for one in batch.samples for ask in one.positions])


def _rate(step: int, settings: Settings) -> float:
    """Up in a few steps, then down in a line."""
    return settings.rate * min(1.0, (step + 1) / settings.warm_up) * max(LAST_RATE, 1 - step / settings.steps)


def _save(
    network: Network, optimizer: torch.optim.Optimizer, settings: Settings, step: int, path: Path
) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    state = {
        "settings": asdict(settings),
        "step": step,
        "adapter": network.state_dict(),
        "optimizer": optimizer.state_dict(),
    }
    torch.save(state, part)
    part.replace(path)


def _resume(network: Network, optimizer: torch.optim.Optimizer, settings: Settings, path: Path) -> int:
    """The step to go on from; 0 when there is nothing of this run."""
    if not path.is_file():
        return 0
    state = torch.load(path, weights_only=True)
    if state["settings"] != asdict(settings):
        return 0
    network.load_state_dict(state["adapter"])
    optimizer.load_state_dict(state["optimizer"])
    return int(state["step"])
