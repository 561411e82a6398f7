"""Writes to a store whose disk begins to fail when TRIGGER appears, and is well again when it goes.

Usage: eio_client.py DATABASE TRIGGER write|checkpoint. Prints what each step came to.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from connectors.base import Delivery
from pipeline.store import journal
from pipeline.store.engine import Store
from schemas.errors import StoreFailed

BATCH = [Delivery("t", b"x" * 1000, 1, 1)] * 20


def attempt(step: Callable[[], object]) -> None:
    try:
        step()
        print("succeeded")
    except StoreFailed as error:
        print(f"StoreFailed committed={error.committed}")


def main(path: Path, trigger: Path, act: str) -> None:
    store = Store.open(path)

    def write() -> range:
        return store.write_sync(lambda c: journal.append(c, "line7", BATCH))

    print("accepted", write().start)
    trigger.touch()
    attempt(write if act == "write" else store.checkpoint)
    trigger.unlink()
    attempt(write)
    attempt(store.checkpoint)
    store.close()
    wal = path.with_name(path.name + "-wal")
    print("closed, wal", "kept" if wal.exists() and wal.stat().st_size else "gone")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
