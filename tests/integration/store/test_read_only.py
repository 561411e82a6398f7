"""Stores that may be looked at and not be written: on a medium that is read-only, or of another user."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from andon import COMMAND, andon, well

from pipeline.store.engine import Store
from pipeline.store.lock import holder
from pipeline.store.view import StoreView
from schemas.errors import StoreError

pytestmark = pytest.mark.timeout(120)

SITE = """\
model: {enabled: false}
metrics: {port: null}
store: {path: andon.db, free_floor_mb: 0}
sources:
  line7: {type: file, path: in.log, follow: false, mode: live}
"""
LOOKING = [
    ("status",),
    ("review", "list"),
    ("review", "show"),
    ("patterns", "list"),
    ("db", "check"),
    ("db", "backup"),
]
CHANGING = [("run",), ("review", "reject"), ("db", "upgrade")]
MORE = {
    ("review", "show"): ["1"],
    ("review", "reject"): ["1", "--why", "a joke"],
    ("db", "backup"): ["COPY"],
}
NOBODY = 65534


def call(command: tuple[str, ...], folder: Path, tmp_path: Path) -> list[str]:
    more = [str(tmp_path / "copy.db") if each == "COPY" else each for each in MORE.get(command, [])]
    return [*command, str(folder / "site.yaml"), *more]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A site that has run and ended well."""
    folder = tmp_path / "site"
    folder.mkdir()
    (folder / "site.yaml").write_text(SITE)
    (folder / "in.log").write_text("the widget frobbed\n")
    well("run", folder / "site.yaml")
    return folder


@pytest.fixture
def medium(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own; the test makes it read-only."""
    medium = tmp_path / "medium"
    medium.mkdir()
    done = os.geteuid() == 0 and subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(medium)], capture_output=True, check=False
    )
    if not done or done.returncode:
        pytest.skip("mounting a tmpfs needs root")
    yield medium
    subprocess.run(["umount", "-l", str(medium)], check=True)


def protect(folder: Path, medium: Path) -> None:
    shutil.copytree(folder, medium, dirs_exist_ok=True)
    subprocess.run(["mount", "-o", "remount,ro", str(medium)], check=True)


def test_a_store_on_a_read_only_medium_is_looked_at(folder: Path, medium: Path, tmp_path: Path) -> None:
    protect(folder, medium)
    for command in LOOKING:
        assert well(*call(command, medium, tmp_path)).out
    for command in CHANGING:
        ran = andon(*call(command, medium, tmp_path))
        assert ran.code == 3 and "file system is mounted read-only" in ran.err and "Traceback" not in ran.err


def test_what_its_log_still_holds_is_not_passed_over(folder: Path, medium: Path, tmp_path: Path) -> None:
    """Read without its log the store would be an old one, or a broken one."""
    (folder / "andon.db-wal").write_bytes(b"the last transactions")
    protect(folder, medium)
    for command in LOOKING:
        ran = andon(*call(command, medium, tmp_path))
        assert (ran.code, ran.out) == (3, "")
        assert "andon.db-wal holds what was written last" in ran.err and "Copy both files" in ran.err


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user needs root")
def test_another_user_is_told_to_be_the_owner(
    folder: Path, tmp_path: Path, require: Callable[[str], str]
) -> None:
    as_nobody = [require("setpriv"), f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", COMMAND]
    for each in (tmp_path, *tmp_path.parents[:2]):  # pytest keeps its folders to itself
        each.chmod(0o755)
    if subprocess.run([*as_nobody, "--version"], capture_output=True, check=False).returncode:
        pytest.skip("this andon is not installed where other users may run it")
    for command in LOOKING:
        given = [*as_nobody, *call(command, folder, tmp_path)]
        ran = subprocess.run(given, capture_output=True, text=True, check=False)
        assert ran.returncode == 3 and "Run this as the store's owner or in its group" in ran.stderr
        assert "Traceback" not in ran.stderr and "dmesg" not in ran.stderr, "the disk is well"


def test_a_look_changes_nothing(folder: Path, tmp_path: Path) -> None:
    before = {path.name: path.stat() for path in folder.iterdir()}
    for command in LOOKING:
        well(*call(command, folder, tmp_path))
    after = {path.name: path.stat() for path in folder.iterdir() if not path.name.endswith(("-wal", "-shm"))}
    assert {name: (each.st_mtime_ns, each.st_size) for name, each in after.items()} == {
        name: (each.st_mtime_ns, each.st_size) for name, each in before.items()
    }


def test_a_view_refuses_writes_and_tells_who_has_the_store(folder: Path) -> None:
    path = folder / "andon.db"
    view = StoreView(path)
    with pytest.raises(StoreError, match="only looked at"):
        view.write_sync(lambda connection: None)
    view.close()
    assert holder(path) is None
    store = Store.open(path)
    try:
        assert holder(path) == str(os.getpid())
        status = well("status", folder / "site.yaml", "--json").record
        assert status["service"] == f"process {os.getpid()} does not answer (yet)"
    finally:
        store.close()
