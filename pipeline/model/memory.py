"""What a model will need in memory, and what there is: asked before loading, since the kernel's answer to too
much is a kill.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

# Activations, scratch of the tokenizer and the allocator's slack, beside the terms counted one by one
# (measured: 20-30 MB).
OVERHEAD_BYTES = 32 * 2**20
FLOAT32_BYTES = 4
FLOAT16_BYTES = 2


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a model that decide what it needs. `embedding_kv` is the width of one layer's keys (or
    values).
    """

    file_bytes: int
    layers: int
    embedding_kv: int
    vocabulary: int


def needed(shape: Shape, context: int, batch: int) -> int:
    """Bytes a model needs: the file (mapped, but all of it is touched), keys and values in F16, logits and
    activations.

    The context's graph is reserved for `batch` rows of logits at most, in single precision.
    """
    kv = 2 * FLOAT16_BYTES * shape.layers * shape.embedding_kv * context
    logits = FLOAT32_BYTES * shape.vocabulary * batch
    return shape.file_bytes + kv + logits + OVERHEAD_BYTES


def available(root: Path = Path("/")) -> int | None:
    """Bytes this process may still take: the machine's MemAvailable, or less where a control group limits it.

    None when the system tells neither. `root` is where proc and sys are mounted.
    """
    known = [value for value in (_machine(root), _control_group(root)) if value is not None]
    return min(known) if known else None


def _machine(root: Path) -> int | None:
    try:
        lines = (root / "proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def _control_group(root: Path) -> int | None:
    """The tightest room left in our control group (version 2) or any of its ancestors."""
    try:
        entries = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    mount = root / "sys/fs/cgroup"
    rooms: list[int] = []
    for entry in entries:
        if not entry.startswith("0::"):
            continue
        group = mount / entry[3:].lstrip("/")
        while True:
            room = _room(group)
            if room is not None:
                rooms.append(room)
            if group == mount or mount not in group.parents:
                break
            group = group.parent
    return min(rooms) if rooms else None


def _room(group: Path) -> int | None:
    """Limit minus use of one control group; file pages that can be dropped do not count as use."""
    try:
        limit = (group / "memory.max").read_text().strip()
        if limit == "max":
            return None
        used = int((group / "memory.current").read_text())
        stat = (group / "memory.stat").read_text().splitlines()
        droppable = sum(int(line.split()[1]) for line in stat if line.startswith("inactive_file "))
        return max(0, int(limit) - max(0, used - droppable))
    except (OSError, ValueError, IndexError):
        return None


def peak_rss_mb() -> float:
    """The most memory this process has had, in MB. ru_maxrss would be the parent's, if that was larger when
    it started us.
    """
    status = Path("/proc/self/status").read_text(encoding="ascii")
    peak_kib = next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(peak_kib) * 1024 / 1e6
