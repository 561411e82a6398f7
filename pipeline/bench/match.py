"""What a line of a known pattern costs without a store: match, plan, decide, validate, on one core."""

from __future__ import annotations

import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from statistics import median

from pipeline import config
from pipeline.bench.figure import Figure, Size
from pipeline.demo.generator import SEED, generate
from pipeline.demo.site import write_site
from pipeline.model.rules import RulesReader
from pipeline.patterns import keep, sign, study
from pipeline.store.codec import now_us
from pipeline.store.engine import Store
from pipeline.wiring import Core
from schemas.events import LogLine, Message

Lines = Sequence[LogLine]


def match(size: Size) -> Iterator[Figure]:
    """Lines of the demo's plant per second, their patterns taught by the rules; baseline: `sign` alone."""
    with tempfile.TemporaryDirectory(prefix="andon-bench-") as folder:
        site = config.load(write_site(Path(folder), port=1))
        store = Store.open(Path(folder) / "match.db", site.store)
        try:
            core = Core(site, store)
            lines = plant(core, size.match_lines)
            teach(core, lines)
            read(core, lines)  # warm: plans are bound, memories filled
            turns = [
                (_rate(lambda: read(core, lines), lines), _rate(lambda: _sign(lines), lines))
                for _ in range(size.match_rounds)
            ]
        finally:
            store.close()
    yield Figure("match", median(ours for ours, _ in turns), "lines/s", median(sign for _, sign in turns))


def plant(core: Core, count: int) -> Lines:
    """Decoded lines of the demo's plant."""
    lines: list[LogLine] = []
    for seq, item in enumerate(generate(SEED, count), 1):
        if item.kind == "line":
            source = "packaging" if item.topic.startswith("packaging/") else "machines"
            message = Message(seq, source, item.topic, item.payload, datetime.now(UTC), qos=1)
            decoded = core.feeds[source].decoder.decode(message)
            lines += [event for event in decoded.events if isinstance(event, LogLine)]
    return lines


def teach(core: Core, lines: Lines) -> None:
    """Every pattern and variant of `lines` is read by the rules, as the read lane would."""
    groups: dict[tuple[str, str, str], list[LogLine]] = defaultdict(list)
    for line in lines:
        found = core.book.match(core.feeds[line.source].profile_name, line.text)
        groups[line.source, found.signature.text, found.variant].append(line)
    reader = RulesReader()
    for (source, _, _), group in groups.items():
        feed = core.feeds[source]
        lesson = study([line.text for line in group], feed.profile, feed.labels, reader)
        if lesson is None:
            continue
        teaching = core.book.propose(feed.profile_name, group[0].text, lesson, now_us())
        if teaching is not None:
            kept = core.store.write_sync(partial(keep, book=core.book, teaching=teaching))
            assert kept is not None, "nobody else teaches this book"
            core.book.commit(teaching, kept)


def read(core: Core, lines: Lines) -> int:
    """Judge every line, as the settle lane does; how many a discard rule or a plan has judged."""
    judged = 0
    for line in lines:
        feed = core.feeds[line.source]
        if feed.judge.early(line) is not None:
            judged += 1
            continue
        found = core.book.match(feed.profile_name, line.text)
        if found.taught is not None:
            if not feed.judge.routine(line, found.taught.lesson):
                core.settler.judge(line, found, found.taught)
            judged += 1
    return judged


def _sign(lines: Lines) -> None:
    for line in lines:
        sign(line.text)


def _rate(work: Callable[[], object], lines: Lines) -> float:
    began = time.perf_counter()
    work()
    return len(lines) / (time.perf_counter() - began)
