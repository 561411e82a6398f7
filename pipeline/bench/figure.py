"""What a bench says, and how much it does to find out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Figure:
    """One measured value and what it was measured against in the same run. `note` is for people."""

    name: str
    value: float
    unit: str
    baseline: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        return self.value / self.baseline if self.baseline else None

    def record(self) -> dict[str, object]:
        """The JSON object of DESIGN §7."""
        return {
            "name": self.name,
            "value": _rounded(self.value),
            "unit": self.unit,
            "baseline": _rounded(self.baseline),
            "ratio": _rounded(self.ratio),
        }


@dataclass(frozen=True, slots=True)
class Size:
    """How much each bench does. The default keeps each of them to about a minute on two slow cores."""

    mqtt_lines: int = 12_000  # a round
    mqtt_rounds: int = 3
    model_lines: int = 50
    match_lines: int = 6_000
    match_rounds: int = 3


def _rounded(value: float | None) -> float | None:
    """Three digits, more are noise; whole numbers from 100 on."""
    if value is None:
        return None
    return float(round(value)) if abs(value) >= 100 else float(f"{value:.3g}")
