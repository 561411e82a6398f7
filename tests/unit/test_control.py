"""The command socket: results and errors come back in words, whatever is sent to it."""

from __future__ import annotations

import asyncio
import json
import socket
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from consumer import until

from pipeline import control
from pipeline.control import ControlServer, ServiceNotRunning, call
from schemas.errors import AndonError, RequestError


async def _add(a: int, b: int = 1) -> int:
    return a + b


async def _refuse() -> None:
    raise AndonError("question 7 is approved by ada already")


async def _misfit() -> None:
    raise RequestError("there is no question 7")


async def _break() -> None:
    raise RuntimeError("a bug")


async def _odd() -> str:
    return "\udcff\u2028 é 温度"


HANDLERS = {"add": _add, "refuse": _refuse, "misfit": _misfit, "break": _break, "odd": _odd}


@pytest.fixture
async def path(tmp_path: Path) -> AsyncIterator[Path]:
    """Where a server listens."""
    path = tmp_path / "andon.sock"
    serving = asyncio.create_task(ControlServer(path, HANDLERS).run())
    await until(path.exists, "the socket")
    yield path
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)
    assert not path.exists()


async def ask(path: Path, command: str, **args: object) -> Any:
    return await asyncio.to_thread(call, path, command, **args)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def raw(path: Path, *lines: bytes) -> list[dict[str, Any]]:
    """What is answered to bytes, line by line, until the server hangs up."""
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(b"".join(line + b"\n" for line in lines))
    writer.write_eof()
    answers = [json.loads(line) for line in (await reader.read()).splitlines()]
    writer.close()
    return answers


async def test_a_command_is_answered(path: Path) -> None:
    assert await ask(path, "add", a=1) == 2
    assert await ask(path, "add", a=1, b=2) == 3
    assert await ask(path, "odd") == "\udcff\u2028 é 温度"


async def test_several_commands_on_one_connection(path: Path) -> None:
    command = b'{"command": "add", "args": {"a": 1}}'
    assert await raw(path, command, command) == [{"ok": True, "result": 2}] * 2


async def test_a_refusal_comes_back_in_its_own_words(path: Path) -> None:
    with pytest.raises(AndonError, match=r"^question 7 is approved by ada already$"):
        await ask(path, "refuse")


async def test_a_bug_is_its_callers_answer_and_the_server_goes_on(path: Path) -> None:
    with pytest.raises(AndonError, match=r"the service failed at it .*a bug.*; its log says where"):
        await ask(path, "break")
    assert await ask(path, "add", a=1) == 2


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b"",
        b"[]",
        b"7",
        b"null",
        b"{}",
        b'{"command": "nothing"}',
        b'{"command": []}',
        b'{"command": "add"}',
        b'{"command": "add", "args": {"a": 1, "c": 2}}',
        b'{"command": "add", "args": null}',
        b'{"command": "add", "args": {"a": "x"}}',
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
async def test_what_is_no_command_is_answered_with_an_error(path: Path, line: bytes) -> None:
    (answer,) = await raw(path, line)
    assert answer["ok"] is False
    assert answer["error"].startswith("not a command this service knows: ")


async def test_a_command_over_the_limit_is_refused(path: Path) -> None:
    (answer,) = await raw(path, b"x" * (control.REQUEST_MAX * 2 + 1))
    assert answer == {"ok": False, "error": f"a command has at most {control.REQUEST_MAX} bytes"}
    assert await ask(path, "add", a=1) == 2


async def test_a_request_that_does_not_fit_is_told_from_one_that_could_not_be_done(path: Path) -> None:
    with pytest.raises(RequestError, match="no question 7"):
        await ask(path, "misfit")
    with pytest.raises(AndonError, match="approved by ada already") as caught:
        await ask(path, "refuse")
    assert not isinstance(caught.value, RequestError)


async def test_a_caller_that_leaves_harms_nobody(path: Path) -> None:
    for _ in range(3):
        _, writer = await asyncio.open_unix_connection(path)
        writer.write(b'{"command": "add", "args"')
        writer.transport.abort()
    assert await ask(path, "add", a=1) == 2


async def test_only_the_owners_group_may_speak(path: Path) -> None:
    assert mode(path) == 0o660


async def test_a_socket_left_by_a_killed_service_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "andon.sock"
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    with pytest.raises(ServiceNotRunning):
        call(path, "add", a=1)
    serving = asyncio.create_task(ControlServer(path, HANDLERS).run())
    await until(lambda: mode(path) == 0o660, "the socket")
    assert await ask(path, "add", a=1) == 2
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


def test_where_nobody_listens(tmp_path: Path) -> None:
    with pytest.raises(ServiceNotRunning, match=r"no service answers at .*; is `andon run` running\?"):
        call(tmp_path / "none.sock", "add")
    (tmp_path / "file").touch()
    with pytest.raises(ServiceNotRunning):
        call(tmp_path / "file", "add")
    with pytest.raises(ServiceNotRunning):
        call(tmp_path / ("x" * 200), "add")


@pytest.mark.parametrize(
    ("answer", "words"),
    [(b"", "closed the connection without an answer"), (b'{"ok"', "ended before it had answered")],
)
async def test_a_service_that_dies_on_the_way(tmp_path: Path, answer: bytes, words: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(answer)
        writer.close()

    async with await asyncio.start_unix_server(serve, tmp_path / "andon.sock"):
        with pytest.raises(AndonError, match=words):
            await ask(tmp_path / "andon.sock", "add", a=1)


async def test_a_service_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control, "ANSWER_S", 0.05)
    gone = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await gone.wait()
        writer.close()

    async with await asyncio.start_unix_server(serve, tmp_path / "andon.sock"):
        with pytest.raises(AndonError, match="did not answer within"):
            await ask(tmp_path / "andon.sock", "add", a=1)
        gone.set()
