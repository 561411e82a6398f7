"""The benches by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from pipeline.bench import match, model, mqtt
from pipeline.bench.broker import mosquitto
from pipeline.bench.figure import Figure, Size

# In the order in which they are run. The first three draw their figures from one run.
BENCHES = ("mqtt", "journal", "store", "model", "match")


class Suite:
    """Runs benches of one size; what two of them look at is measured once."""

    def __init__(self, size: Size | None = None) -> None:
        size = size or Size()
        passages = mqtt.Passages(size, mosquitto())
        self._benches: dict[str, Callable[[], Iterator[Figure]]] = {
            "mqtt": lambda: mqtt.mqtt(passages),
            "journal": lambda: mqtt.journal(passages),
            "store": lambda: mqtt.store(passages),
            "model": lambda: model.model(size),
            "match": lambda: match.match(size),
        }

    def run(self, name: str) -> list[Figure]:
        """Measure. Raises KeyError when `name` is none of BENCHES, AndonError when it cannot be measured."""
        return list(self._benches[name]())
