"""Disks that are full or failing: the first is survived, the second ends everything at once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from connectors.base import Delivery
from pipeline.store import admin, journal
from pipeline.store.engine import Store
from pipeline.store.options import StoreConfig
from pipeline.store.space import CHECK_EVERY_S
from schemas.errors import StoreUnavailable

HERE = Path(__file__).parent
MB = 1_000_000
BATCH = [Delivery("t", b"x" * 1000, 1, 1)] * 20


def append(store: Store) -> range:
    return store.write_sync(lambda c: journal.append(c, "line7", BATCH))


def held(store: Store) -> list[int]:
    with store.read() as connection:
        return [message.seq for message in journal.after(connection, 0, 10**6)]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MB of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    if mount is None or os.geteuid():
        pytest.skip("mounting a tmpfs needs root")
    mounted = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a tmpfs needs root")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.parametrize("filler_mb", [0, 2.5], ids=["by itself", "by others"])
def test_a_full_disk_loses_nothing_and_heals(small_disk: Path, filler_mb: float) -> None:
    filler = small_disk / "filler"
    filler.write_bytes(b"\0" * int(filler_mb * MB))
    store = Store.open(small_disk / "andon.db", StoreConfig(free_floor_mb=0))
    accepted: list[int] = []
    with pytest.raises(StoreUnavailable):
        for _ in range(1000):
            accepted += append(store)
    assert accepted and held(store) == accepted
    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            for _ in range(1000):
                accepted += append(store)
    subprocess.run(["mount", "-o", "remount,size=40m", str(small_disk)], check=True)
    for _ in range(20):
        accepted += append(store)
    assert held(store) == accepted == list(range(1, len(accepted) + 1))
    store.close()
    assert admin.check(store.path) == []


def test_the_floor_keeps_a_reserve(small_disk: Path) -> None:
    store = Store.open(small_disk / "andon.db", StoreConfig(free_floor_mb=2))
    with pytest.raises(StoreUnavailable, match="below the floor"):
        for _ in range(10_000):
            append(store)
            store._space._checked_at -= CHECK_EVERY_S  # look every time, instead of waiting
    assert store.free_bytes() > MB
    store.write_sync(lambda c: journal.set_cursor(c, held(store)[-1]))  # what was accepted goes on
    store.close()


def test_a_full_disk_at_the_end_keeps_the_wal(small_disk: Path) -> None:
    path = small_disk / "andon.db"
    store = Store.open(path, StoreConfig(free_floor_mb=0))
    accepted: list[int] = []
    with pytest.raises(StoreUnavailable):
        for _ in range(1000):
            accepted += append(store)
    (small_disk / "filler").write_bytes(b"\0" * store.free_bytes())
    store.close()
    subprocess.run(["mount", "-o", "remount,size=40m", str(small_disk)], check=True)
    again = Store.open(path)
    assert held(again) == accepted
    again.close()


def test_a_write_error_is_fatal_and_never_tried_again(tmp_path: Path) -> None:
    """A file size limit makes pwrite fail with EFBIG, which SQLite reports as an I/O error."""
    code = f"""
import resource, sys
sys.argv = ["appender.py", {str(tmp_path / "andon.db")!r}, "1"]
resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, resource.RLIM_INFINITY))
exec(compile(open({str(HERE / "appender.py")!r}).read(), "appender.py", "exec"))
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 3, ended.stderr
    assert ended.stderr.startswith("StoreFailed") and "the disk failed" in ended.stderr
    reported = [line.split() for line in ended.stdout.splitlines()[1:]]
    store = Store.open(tmp_path / "andon.db")
    assert held(store)[: int(reported[-1][1]) - 1] == list(range(1, int(reported[-1][1])))
    store.close()
    assert admin.check(store.path) == []


@pytest.fixture(scope="module")
def failing_fsync(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that makes fsync fail with EIO for files named *$EIO_SUFFIX while $EIO_WHEN exists."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    library = tmp_path_factory.mktemp("eio") / "eio.so"
    source = HERE / "failing_fsync.c"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(library), str(source), "-ldl"], check=True)
    return library


@pytest.mark.parametrize(
    ("suffix", "act", "committed"),
    [("-wal", "write", "None"), ("", "checkpoint", "False")],
    ids=["while committing", "while checkpointing"],
)
def test_a_failed_flush_ends_everything(
    tmp_path: Path, failing_fsync: Path, suffix: str, act: str, committed: str
) -> None:
    """After EIO a second fsync may succeed though data is lost: nothing is written again, even at close."""
    path, trigger = tmp_path / "andon.db", tmp_path / "now"
    environment = {
        **os.environ,
        "LD_PRELOAD": str(failing_fsync),
        "EIO_SUFFIX": path.name + suffix,
        "EIO_WHEN": str(trigger),
    }
    ended = subprocess.run(
        [sys.executable, str(HERE / "eio_client.py"), str(path), str(trigger), act],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == [
        "accepted 1",
        f"StoreFailed committed={committed}",
        "StoreFailed committed=False",  # the disk is well again by now, and it makes no difference
        "StoreFailed committed=False",
        "closed, wal kept",
    ]
    store = Store.open(path)
    assert held(store)[:20] == list(range(1, 21))
    store.close()
    assert admin.check(path) == []
