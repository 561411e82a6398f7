"""Standard input: whole lines as they come, to the end, through a real pipe and in a real process."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from consumer import Consumer, Notices, consuming, until

from connectors.base import NoticeKind
from connectors.stdin import StdinSource


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    yield read, write
    for descriptor in (read, write):
        try:
            os.close(descriptor)
        except OSError:
            pass


async def test_lines_come_as_they_are_written(pipe: tuple[int, int]) -> None:
    read, write = pipe
    consumer = Consumer(StdinSource("stdin", descriptor=read))
    os.write(write, b"one\nha")
    await consumer.wait_for(1)
    assert consumer.payloads == [b"one\n"]
    os.write(write, b"lf\nlast")
    os.close(write)
    await until(consumer.task.done)
    assert consumer.payloads == [b"one\n", b"half\n", b"last"]
    assert consumer.error is None
    assert [d.position for d in consumer.taken] == [4, 9, 13]
    assert consumer.source.position == {}


async def test_a_slow_consumer_slows_the_writer_down(pipe: tuple[int, int]) -> None:
    read, write = pipe
    source = StdinSource("stdin", descriptor=read, queue_messages=4)
    data = b"0123456789\n" * 100_000
    async with consuming(source) as consumer:
        consumer.running.clear()
        writing = asyncio.create_task(asyncio.to_thread(_write_all, write, data))
        await asyncio.sleep(0.3)
        assert not writing.done()
        assert source.stats().queue_depth <= 4
        consumer.running.set()
        await writing
        await until(lambda: b"".join(consumer.payloads) == data)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
    os.close(descriptor)


async def test_a_monstrous_line_is_said(pipe: tuple[int, int]) -> None:
    read, write = pipe
    notices = Notices()
    consumer = Consumer(StdinSource("stdin", descriptor=read, notices=notices))
    await asyncio.to_thread(_write_all, write, b"x" * 1_200_000)
    await until(consumer.task.done)
    assert b"".join(consumer.payloads) == b"x" * 1_200_000
    assert len(notices.of(NoticeKind.LINE_SPLIT)) == 1


async def test_pause_ends_it_though_the_writer_goes_on(pipe: tuple[int, int]) -> None:
    read, write = pipe
    consumer = Consumer(StdinSource("stdin", descriptor=read))
    os.write(write, b"one\n")
    await consumer.wait_for(1)
    await consumer.stop()
    assert consumer.error is None


PROGRAM = """
import asyncio, sys
from connectors.file import StdinConfig

async def main():
    source = StdinConfig(type="stdin").build("stdin")
    async for batch in source.batches():
        for delivery in batch:
            sys.stdout.write(delivery.payload.decode())
            sys.stdout.flush()
        if "--once" in sys.argv:
            await source.pause()

asyncio.run(main())
"""


def test_a_process_reads_a_redirected_file(tmp_path: os.PathLike[str]) -> None:
    lines = "".join(f"line {number}\n" for number in range(3000))
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], input=lines, capture_output=True, text=True, timeout=30
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, lines, "")


def test_a_process_that_stops_while_its_input_is_open_exits_at_once() -> None:
    """A thread is blocked in a read then, and must not keep the interpreter from ending, nor crash it."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "--once"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin and process.stdout and process.stderr
        process.stdin.write("one\n")
        process.stdin.flush()
        assert process.stdout.readline() == "one\n"
        assert process.wait(20) == 0
        assert process.stderr.read() == ""
