"""Appends and settles for ever, printing each range of seqs once it is on disk. Killed by the tests.

Usage: appender.py DATABASE SEED. A StoreError ends it with exit code 3 and the error's name on stderr.
"""

from __future__ import annotations

import random
import sys
from pathlib import Path

from sqlalchemy import Connection

from connectors.base import Delivery
from pipeline.store import events, journal
from pipeline.store.engine import Store
from pipeline.store.events import EventRow, Kind
from pipeline.store.retention import purge
from schemas.errors import StoreError
from schemas.events import EventId
from schemas.ticket import Outcome

# Young enough to stay: what was printed must be found afterwards.
RECEIVED_AT_US = 2_000_000


def settle(connection: Connection) -> None:
    messages = journal.after(connection, journal.cursor(connection), 64)
    events.settle(
        connection, [EventRow(EventId(m.seq, 0), m.source, Kind.LINE, Outcome.DISCARD, "r") for m in messages]
    )
    if messages:
        journal.set_cursor(connection, messages[-1].seq)
    purge(connection, before_us=1_000_000, max_bytes=10**12, now_us=3_000_000)


def main(path: Path, seed: int) -> None:
    rng = random.Random(seed)
    store = Store.open(path)
    print("ready", flush=True)
    while True:
        size = rng.choice([10, 1000, 30_000])
        batch = [Delivery("t", rng.randbytes(size), RECEIVED_AT_US, 1) for _ in range(rng.randint(1, 40))]
        seqs = store.write_sync(lambda c, batch=batch: journal.append(c, "line7", batch))  # type: ignore[misc]
        print(seqs.start, seqs.stop, flush=True)
        if rng.random() < 0.5:
            store.write_sync(settle)


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), int(sys.argv[2]))
    except StoreError as error:
        print(type(error).__name__, getattr(error, "committed", ""), error, file=sys.stderr)
        sys.exit(3)
