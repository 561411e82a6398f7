"""The command socket: how the command line (and later the page) reaches the running service.

One writer owns the store (DESIGN §3), so everything that changes something is sent to the service over a
unix socket. The protocol is one JSON object a line: `{"command": "review.approve", "args": {...}}` is
answered by `{"ok": true, "result": ...}` or `{"ok": false, "error": "..."}`, with `"refused": true` when the
request does not fit. The socket is readable by its
owner's group only.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import structlog

from schemas.errors import AndonError, RequestError

log = structlog.get_logger(__name__)

Handler = Callable[..., Awaitable[object]]

# A command is small; a longer line is a mistake or an attack, and is answered with an error.
REQUEST_MAX = 1_048_576

# What one answer may take: a correction replays its held lines before it answers.
ANSWER_S = 120.0


class ServiceNotRunning(AndonError):
    """Nobody listens at the command socket."""


class ControlServer:
    """Serves `handlers` on a unix socket at `path` until cancelled. An error in a handler is its caller's
    answer."""

    name = "control"

    def __init__(self, path: Path, handlers: Mapping[str, Handler]) -> None:
        self.path = path
        self.handlers = handlers

    async def run(self) -> None:
        self.path.unlink(missing_ok=True)  # the store's lock says that no other service runs
        server = await asyncio.start_unix_server(self._serve, path=self.path, limit=REQUEST_MAX)
        os.chmod(self.path, 0o660)
        try:
            async with server:
                await server.serve_forever()
        finally:
            self.path.unlink(missing_ok=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                await _send(writer, await self._answer(line))
        except ConnectionError:
            pass  # the caller went away: nothing of ours is at stake
        except ValueError:
            with suppress(ConnectionError):
                await _send(writer, {"ok": False, "error": f"a command has at most {REQUEST_MAX} bytes"})
                while await reader.read(
                    REQUEST_MAX
                ):  # hanging up on bytes on their way would lose the answer
                    pass
        finally:
            writer.close()

    async def _answer(self, line: bytes) -> dict[str, object]:
        try:
            request = json.loads(line)
            handler = self.handlers[request["command"]]
            return {"ok": True, "result": await handler(**request.get("args", {}))}
        except RequestError as error:
            return {"ok": False, "error": str(error), "refused": True}
        except AndonError as error:
            return {"ok": False, "error": str(error)}
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            log.warning("control.bad_request", error=repr(error))
            return {"ok": False, "error": f"not a command this service knows: {error}"}
        except Exception as error:
            log.exception("control.failed")
            return {"ok": False, "error": f"the service failed at it ({error!r}); its log says where"}


async def _send(writer: asyncio.StreamWriter, answer: dict[str, object]) -> None:
    writer.write(json.dumps(answer, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n")
    await writer.drain()


def call(path: Path, command: str, **args: object) -> Any:
    """Send one command to the running service and return its result.

    Raises ServiceNotRunning when nobody listens, RequestError or AndonError with the service's own words when
    it refuses.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(ANSWER_S)
        try:
            connection.connect(str(path))
        except OSError as error:
            raise ServiceNotRunning(f"no service answers at {path}; is `andon run` running?") from error
        try:
            connection.sendall(json.dumps({"command": command, "args": args}).encode() + b"\n")
            answer = json.loads(connection.makefile(encoding="utf-8").readline() or "{}")
        except TimeoutError as error:
            raise AndonError(f"the service at {path} did not answer within {ANSWER_S:.0f} s") from error
        except (OSError, ValueError) as error:
            raise AndonError(f"the service at {path} ended before it had answered ({error})") from error
    if not answer.get("ok"):
        kind = RequestError if answer.get("refused") else AndonError
        raise kind(str(answer.get("error", "the service closed the connection without an answer")))
    return answer["result"]
