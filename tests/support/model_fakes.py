"""What tests of the model room share: a profile, labels, a scripted runtime, and GGUF files made by hand."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

from pipeline.fields.definition import FieldConfig, Labels, Profile
from schemas.errors import ModelOverflow
from schemas.extraction import FieldType, Severity


def quantity(description: str, unit: str) -> FieldConfig:
    return FieldConfig(type=FieldType.QUANTITY, description=description, unit=unit)


PROFILE = Profile(
    fields={
        "timestamp": FieldConfig(type=FieldType.TIMESTAMP, description="when it happened"),
        "device": FieldConfig(type=FieldType.ASSET, description="the most specific named equipment"),
        "error_code": FieldConfig(type=FieldType.CODE, description="error, fault or alarm code"),
        "temperature": quantity("measured temperature", "°C"),
        "pressure": quantity("measured pressure", "bar"),
        "vibration": quantity("measured vibration", "mm/s"),
        "current": quantity("measured electric current", "A"),
        "voltage": quantity("measured voltage", "V"),
        "speed": quantity("measured rotational or linear speed", "rpm"),
    }
)

LABELS = Labels(
    severities={
        Severity.INFO: "routine, nothing to do",
        Severity.WARNING: "degraded or near a limit",
        Severity.ERROR: "a function is lost",
        Severity.CRITICAL: "stopped, unsafe or about to lose data",
    },
    categories={
        "hardware_fault": "a physical part failed",
        "sensor_fault": "a reading is missing or implausible",
        "network_issue": "bus, link, broker or timeout",
        "software_bug": "exception, configuration, crash",
        "process_alarm": "process value, limit, trip, power supply",
        "operator_action": "human or commanded action",
        "security": "failed login, certificate, intrusion",
        "other": "routine status",
    },
    actions={
        "call_mechanic": "send a mechanic to repair the part",
        "check_network": "check the network and its bus",
    },
)


class ScriptedRuntime:
    """Gives each word a token and answers as told: `answer(prompt so far, option) -> logit`."""

    digest = "f" * 64

    def __init__(self, answer: Callable[[str, str], float] | None = None, context: int = 4096) -> None:
        self.context = context
        self.tuned = False
        self.answer = answer or (lambda _prompt, _option: 0.0)
        self.closed = False
        self.prompts: list[str] = []
        self._words: dict[str, int] = {}
        self._texts: list[str] = []

    def tokens(self, text: str) -> list[int]:
        """Blank-led words and single other characters, each a token of its own."""
        pieces, at = [], 0
        while at < len(text):
            end = at + 1
            while (
                end < len(text)
                and text[end].isalnum()
                and text[at:end].lstrip().isalnum() | (text[at:end] == " ")
            ):
                end += 1
            pieces.append(text[at:end])
            at = end
        return [self._words.setdefault(piece, self._new(piece)) for piece in pieces]

    def _new(self, piece: str) -> int:
        if piece not in self._words:
            self._texts.append(piece)
            return len(self._texts) - 1
        return self._words[piece]

    def score(
        self, head: Sequence[int], body: Sequence[int], asks: Sequence[int], options: Sequence[int]
    ) -> list[list[float]]:
        if len(head) + len(body) > self.context:
            raise ModelOverflow(f"{len(head)} + {len(body)} tokens exceed the context of {self.context}")
        self.prompts.append(self.text([*head, *body]))
        return [
            [self.answer(self.text(body[: ask + 1]), self._texts[option].strip()) for option in options]
            for ask in asks
        ]

    def text(self, tokens: Sequence[int]) -> str:
        return "".join(self._texts[token] for token in tokens)

    def close(self) -> None:
        self.closed = True


def gguf(
    values: dict[str, str | int], tensors: Sequence[tuple[str, int, int]] = (), data: bytes = b""
) -> bytes:
    """A GGUF 3 file. A tensor is (name, number of 32-bit floats, offset)."""
    parts = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), len(values))]
    for key, value in values.items():
        parts.append(_string(key))
        if isinstance(value, str):
            parts.append(struct.pack("<I", 8) + _string(value))
        else:
            parts.append(struct.pack("<II", 4, value))
    for name, floats, offset in tensors:
        parts.append(_string(name) + struct.pack("<IQIQ", 1, floats, 0, offset))
    head = b"".join(parts)
    return head + b"\0" * (-len(head) % 32) + data


def _string(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw
