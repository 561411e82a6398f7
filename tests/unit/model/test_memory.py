"""What there is: the machine's own figure, or the tightest control group above us."""

from __future__ import annotations

from pathlib import Path

from pipeline.model.memory import Shape, available, needed

MB = 2**20


def machine(root: Path, available_kb: int, group: str = "/") -> Path:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/meminfo").write_text(f"MemTotal: 9999999 kB\nMemAvailable:   {available_kb} kB\n")
    (root / "proc/self/cgroup").write_text(f"0::{group}\n")
    return root


def group(root: Path, path: str, limit: str, used: int, inactive: int = 0) -> None:
    folder = root / "sys/fs/cgroup" / path
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "memory.max").write_text(limit + "\n")
    (folder / "memory.current").write_text(f"{used}\n")
    (folder / "memory.stat").write_text(f"anon {used}\ninactive_file {inactive}\n")


def test_the_machine_alone(tmp_path: Path) -> None:
    assert available(machine(tmp_path, 2048)) == 2048 * 1024


def test_nothing_known(tmp_path: Path) -> None:
    assert available(tmp_path) is None


def test_the_tightest_ancestor_counts(tmp_path: Path) -> None:
    machine(tmp_path, 1_000_000, "/system.slice/andon.service")
    group(tmp_path, "system.slice/andon.service", str(600 * MB), 100 * MB)
    group(tmp_path, "system.slice", str(500 * MB), 400 * MB, inactive=50 * MB)
    assert available(tmp_path) == 150 * MB


def test_no_limit_and_odd_files_leave_the_machine(tmp_path: Path) -> None:
    machine(tmp_path, 4096, "/user.slice/x")
    group(tmp_path, "user.slice/x", "max", 5)
    group(tmp_path, "user.slice", "not a number", 5)
    assert available(tmp_path) == 4096 * 1024


def test_a_full_group_has_no_room(tmp_path: Path) -> None:
    machine(tmp_path, 4096, "/a")
    group(tmp_path, "a", "1000", 5000)
    assert available(tmp_path) == 0


def test_needed_grows_with_context_and_batch() -> None:
    shape = Shape(file_bytes=98 * MB, layers=30, embedding_kv=192, vocabulary=49_152)
    small, long, wide = needed(shape, 1024, 128), needed(shape, 4096, 128), needed(shape, 1024, 512)
    assert 98 * MB < small < long
    assert long - small == 2 * 2 * 30 * 192 * 3072  # keys and values, two bytes each
    assert wide - small == 4 * 49_152 * 384
