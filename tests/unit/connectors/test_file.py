"""Log files: followed, rotated both ways, taken up after a restart; no line is lost, doubled or cut."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from consumer import Consumer, Notices, consuming, until
from pydantic import JsonValue

from connectors.base import NoticeKind
from connectors.file import FileConfig, FileSource
from schemas.errors import SourceError, SourceRefused


class Log:
    """A log file and the sources that read it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notices = Notices()

    def append(self, text: str | bytes) -> None:
        with self.path.open("ab") as file:
            file.write(text.encode() if isinstance(text, str) else text)

    def source(self, position: Any = None, **changes: Any) -> FileSource:
        grace_s = changes.pop("grace_s", 0.0)
        config = FileConfig.model_validate({"type": "file", "path": str(self.path), **changes})
        return FileSource("log", config, self.path, position=position, notices=self.notices, grace_s=grace_s)

    async def rest(self, position: Any = None, **changes: Any) -> bytes:
        """All that a source reads until the end of file."""
        source = self.source(position, follow=False, **changes)
        return b"".join([delivery.payload async for batch in source.batches() for delivery in batch])


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "machine.log")


def text_of(consumer: Consumer) -> bytes:
    return b"".join(consumer.payloads)


async def shows(consumer: Consumer, text: bytes) -> None:
    await until(lambda: text_of(consumer) == text or consumer.task.done(), f"{text!r}")
    assert text_of(consumer) == text


async def test_lines_of_a_file_that_is_not_followed(log: Log) -> None:
    log.append(b"\xef\xbb\xbfone\r\ntwo\nthree without a line break")
    source = log.source(follow=False)
    consumer = Consumer(source)
    await until(consumer.task.done)
    assert text_of(consumer) == log.path.read_bytes(), "raw, with its byte order mark and line ends"
    assert consumer.taken[-1].position == log.path.stat().st_size
    assert {d.topic for d in consumer.taken} == {str(log.path)}
    assert {(d.qos, d.connection) for d in consumer.taken} == {(0, "")}


async def test_a_followed_file_yields_whole_lines_only(log: Log) -> None:
    log.append("one\ntw")
    async with consuming(log.source()) as consumer:
        await shows(consumer, b"one\n")
        log.append("o\nthr")
        await shows(consumer, b"one\ntwo\n")
    position = consumer.source.position
    assert position["offset"] == len("one\ntwo\n")
    log.append("ee\n")
    assert await log.rest(position) == b"three\n"


async def test_chunks_carry_many_lines(log: Log) -> None:
    log.append("0123456789\n" * 100_000)
    source = log.source(follow=False)
    batches = [list(batch) async for batch in source.batches()]
    deliveries = [delivery for batch in batches for delivery in batch]
    assert len(deliveries) < 400
    assert b"".join(d.payload for d in deliveries) == log.path.read_bytes()
    assert all(d.payload.endswith(b"\n") for d in deliveries)
    ends = [d.position for d in deliveries]
    assert ends == sorted(ends)


async def test_position_belongs_to_the_batch_yielded_last(log: Log) -> None:
    log.append("0123456789\n" * 300_000)
    source = log.source(follow=False)
    seen = b""
    async for batch in source.batches():
        seen += b"".join(delivery.payload for delivery in batch)
        assert source.position["offset"] == batch[-1].position == len(seen)
        rest = await log.rest(source.position)
        assert seen + rest == log.path.read_bytes()
        if len(seen) > 1_500_000:
            break


@pytest.mark.parametrize("start", ["beginning", "end"])
async def test_a_restart_goes_on_where_it_was(log: Log, start: str) -> None:
    log.append("old\n")
    async with consuming(log.source(start=start)) as consumer:
        await until(lambda: consumer.source.position)
        log.append("new\n")
        await until(lambda: b"new\n" in text_of(consumer))
    log.append("later\n")
    assert await log.rest(consumer.source.position, start=start) == b"later\n"
    assert text_of(consumer) == (b"new\n" if start == "end" else b"old\nnew\n")


async def test_start_at_the_end_takes_the_unfinished_line_whole(log: Log) -> None:
    log.append("old\nhalf")
    async with consuming(log.source(start="end")) as consumer:
        await until(lambda: consumer.source.position)
        log.append(" and half\n")
        await shows(consumer, b"half and half\n")


async def test_start_at_the_end_reads_all_of_a_file_that_comes_later(log: Log) -> None:
    async with consuming(log.source(start="end")) as consumer:
        await until(lambda: log.notices.of(NoticeKind.UNREACHABLE))
        log.append("first\n")
        await shows(consumer, b"first\n")
    assert len(log.notices.of(NoticeKind.UNREACHABLE)) == 1


# Rotation.


async def test_rotation_by_rename(log: Log) -> None:
    log.append("one\n")
    async with consuming(log.source(grace_s=0.6)) as consumer:
        await shows(consumer, b"one\n")
        log.path.rename(log.path.with_name("machine.log.1"))
        with log.path.with_name("machine.log.1").open("ab") as late:
            late.write(b"two, by a writer that has not noticed\n")
        log.append("three\n")
        await shows(consumer, b"one\ntwo, by a writer that has not noticed\nthree\n")
    assert len(log.notices.of(NoticeKind.ROTATED)) == 1


async def test_the_last_line_of_a_rotated_file_needs_no_line_break(log: Log) -> None:
    log.append("one\nhalf")
    async with consuming(log.source()) as consumer:
        await shows(consumer, b"one\n")
        log.path.rename(log.path.with_name("machine.log.1"))
        log.append("new\n")
        await until(lambda: b"new\n" in text_of(consumer))
        assert consumer.payloads == [b"one\n", b"half", b"new\n"], "two files never share a delivery"


@pytest.mark.parametrize("grown", [False, True], ids=["shorter", "grown past the old offset"])
async def test_rotation_by_copy_and_truncate(log: Log, grown: bool) -> None:
    log.append("one\ntwo\n")
    async with consuming(log.source()) as consumer:
        await shows(consumer, b"one\ntwo\n")
        fresh = "a new beginning, longer than before\n" if grown else "new\n"
        log.path.write_text(fresh)  # truncates in place
        await shows(consumer, b"one\ntwo\n" + fresh.encode())
    assert len(log.notices.of(NoticeKind.TRUNCATED)) == 1


async def test_rotations_while_we_were_down_are_read_in_order(log: Log) -> None:
    log.append("one\n")
    assert await log.rest() == b"one\n"
    position = await _position(log)
    log.append("two\n")
    names = ["machine.log.2", "machine.log.1", "machine.log"]
    log.path.rename(log.path.with_name(names[0]))
    log.path.with_name(names[1]).write_text("three\n")
    log.path.write_text("four\n")
    for age, name in enumerate(names):
        os.utime(log.path.with_name(name), (1_700_000_000 + age, 1_700_000_000 + age))
    log.path.with_name("machine.log.errors").write_text("another log\n")
    log.path.with_name("machine.log.3.gz").write_bytes(b"\x1f\x8b")
    async with consuming(log.source(position)) as consumer:
        await shows(consumer, b"two\nthree\nfour\n")
    assert not log.notices.of(NoticeKind.GAP)


async def test_a_file_that_is_gone_is_a_gap_and_said(log: Log) -> None:
    log.append("one\n")
    position = await _position(log)
    log.path.unlink()
    log.append("another file, perhaps with the same inode\n")
    assert await log.rest(position) == log.path.read_bytes()
    assert log.notices.of(NoticeKind.GAP)


async def test_an_inode_given_again_is_not_taken_for_the_old_file(log: Log) -> None:
    """The new file is longer than the old offset: by inode and size its first lines would be skipped."""
    log.append("one\n")
    position = dict(await _position(log))
    log.path.unlink()
    log.append("first line of the new file\nsecond\n")
    position["inode"] = log.path.stat().st_ino
    assert await log.rest(position) == log.path.read_bytes()


async def _position(log: Log) -> dict[str, JsonValue]:
    source = log.source(follow=False)
    async for _ in source.batches():
        pass
    return dict(source.position)


# Odd files.


async def test_utf_16_is_cut_between_characters(log: Log) -> None:
    text = "".join(f"Zeile {number} \u0a0a\u010a\n" for number in range(600))
    log.append(text.encode("utf-16"))
    source = log.source(follow=False)
    payloads = [d.payload async for batch in source.batches() for d in batch]
    assert len(payloads) == 3
    assert payloads[0].decode("utf-16") + b"".join(payloads[1:]).decode("utf-16-le") == text
    assert all(payload.endswith(b"\n\0") for payload in payloads)


async def test_a_line_longer_than_a_payload_is_split_and_said(log: Log) -> None:
    log.append(b"x" * 1_500_000 + b"\nnext\n")
    source = log.source(follow=False)
    payloads = [d.payload async for batch in source.batches() for d in batch]
    assert b"".join(payloads) == log.path.read_bytes()
    assert len(log.notices.of(NoticeKind.LINE_SPLIT)) == 1


async def test_nul_bytes_and_garbage_pass_through(log: Log) -> None:
    data = b"a\0b\n\xff\xfe\xfd\n" + bytes(range(256)) + b"\n"
    log.append(data)
    assert await log.rest() == data


async def test_an_empty_file(log: Log) -> None:
    log.append("")
    assert await log.rest() == b""


async def test_a_missing_file_that_is_not_followed_is_an_error(log: Log) -> None:
    with pytest.raises(SourceError, match="does not exist"):
        await log.rest()


async def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceRefused, match="no regular file"):
        await Log(tmp_path).rest()
    assert not (await Log(tmp_path).source().check()).ok


async def test_a_pipe_is_refused_and_does_not_hang(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(SourceRefused, match="no regular file"):
        await Log(tmp_path / "pipe").rest()


async def test_check(log: Log) -> None:
    assert "yet" in (await log.source().check()).message
    assert not (await log.source(follow=False).check()).ok
    log.append("x")
    assert (await log.source().check()).ok


# Stopping.


async def test_pause_ends_the_source_and_loses_nothing(log: Log) -> None:
    log.append("one\n")
    source = log.source()
    consumer = Consumer(source)
    await shows(consumer, b"one\n")
    await source.pause()
    await until(consumer.task.done)
    log.append("two\n")
    await source.close()
    assert not source.stats().connected
    assert await log.rest(source.position) == b"two\n"


async def test_a_cancelled_reader_has_no_position_beyond_what_it_got(log: Log) -> None:
    """A cancelled task may have read ahead; what it never yielded is read again."""
    for _ in range(20):
        log.path.write_bytes(b"")
        log.append("line\n" * 200_000)
        source = log.source(follow=False)
        consumer = Consumer(source)
        await asyncio.sleep(0.003)
        await consumer.abandon()
        rest = await log.rest(source.position)
        assert text_of(consumer) + rest == log.path.read_bytes()


async def test_files_are_closed(log: Log) -> None:
    log.append("one\n")
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        async with consuming(log.source()) as consumer:
            await shows(consumer, b"one\n")
    assert len(os.listdir("/proc/self/fd")) <= before
