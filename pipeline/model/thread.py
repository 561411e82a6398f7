"""The one thread that owns the model: loads it in the background, reads with it, and lets it go within a
bound.

A llama.cpp context used by two threads kills the process (GGML_ASSERT), and cancelling an await does not stop
C code. So every call runs in one thread, one line a call: whoever stops waiting leaves at most one line's
work behind.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import StrEnum
from typing import Protocol, TypeVar

import structlog

from pipeline.fields.definition import Labels, Profile
from pipeline.model.options import ModelConfig
from pipeline.model.runtime import Reader
from schemas.errors import ModelError
from schemas.extraction import Verdict

# A line within the default context takes some seconds on a slow, busy gateway; systemd allows 40 s for the
# whole stop.
STOP_S = 15.0

T = TypeVar("T")

log = structlog.get_logger("andon.model")


class ClosingReader(Reader, Protocol):
    """A reader that holds a model and can let it go."""

    def close(self) -> None: ...


class ModelState(StrEnum):
    """What the model thread is doing. In every state but READY, lines are read by the rules alone."""

    OFF = "off"
    LOADING = "loading"
    READY = "ready"
    FAILED = "failed"
    STOPPED = "stopped"


class _Turn:
    """The thread's reader, for one call of `ModelThread.call`."""

    def __init__(self, thread: ModelThread) -> None:
        self._thread = thread

    @property
    def name(self) -> str:
        return self._thread.reader.name

    def read(self, texts: Sequence[str], profile: Profile, labels: Labels) -> list[Verdict]:
        return [self._thread.read_now(text, profile, labels) for text in texts]


class ModelThread:
    """Reads lines with the model when it can, with the rules when it cannot; says which, and why.

    `load` runs in the model's thread and gives a reader, or raises ModelError. `fallback` needs no model.
    `readings` counts lines read with the model, `seconds` the time that took.
    """

    def __init__(
        self, config: ModelConfig, fallback: Reader, load: Callable[[ModelConfig], ClosingReader]
    ) -> None:
        self._config = config
        self._fallback = fallback
        self._load = load
        self._model: ClosingReader | None = None
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="model")
        self._loaded = asyncio.Event()
        self._loading: asyncio.Task[None] | None = None
        self._closing: asyncio.Future[None] | None = None
        self.state = ModelState.OFF
        self.reason = "" if config.enabled else "model.enabled is false"
        self.readings = 0
        self.seconds = 0.0

    @property
    def reader(self) -> Reader:
        """Who reads now."""
        return self._model if self._model is not None and self.state is ModelState.READY else self._fallback

    @property
    def gone(self) -> bool:
        """Whether nothing runs in the model's thread any more. Not before `stop`."""
        return self._closing is not None and self._closing.done()

    def start(self) -> None:
        """Begins loading and returns at once. Without effect when the model is off or already there."""
        if not self._config.enabled or self.state is not ModelState.OFF:
            self._loaded.set()
            return
        self.state = ModelState.LOADING
        self._loading = asyncio.create_task(self._bring_up(), name="model.load")

    async def until_loaded(self) -> ModelState:
        """Waits until the model is ready or known not to be, and says which."""
        await self._loaded.wait()
        return self.state

    async def read(self, texts: Sequence[str], profile: Profile, labels: Labels) -> list[Verdict]:
        """One verdict a text, in order. Waits for a model that is still loading; the rules read when there is
        none.

        Cancelling is safe at any time: the line being read is finished in its thread and forgotten. Raises
        ModelError only after `stop`.
        """
        if self.state is ModelState.LOADING:
            await self._loaded.wait()
        return [await self._read_one(text, profile, labels) for text in texts]

    async def call(self, work: Callable[[Reader], T]) -> T:
        """Runs `work` in the model's thread with whoever reads now, for work that decides while it reads
        how much more to read. `work` must be bounded: nothing else is read meanwhile. Waits for a model
        that is still loading.

        Raises what `work` raises, and ModelError after `stop`.
        """
        if self.state is ModelState.LOADING:
            await self._loaded.wait()
        if self.state is ModelState.STOPPED:
            raise ModelError("the model thread has been stopped")
        return await asyncio.get_running_loop().run_in_executor(self._pool, work, _Turn(self))

    async def stop(self, timeout_s: float = STOP_S) -> bool:
        """Lets the model go once the line being read is done; False when that takes over `timeout_s`."""
        if self.state is ModelState.STOPPED:
            return True
        self.state = ModelState.STOPPED
        self._loaded.set()
        if self._loading is not None:
            self._loading.cancel()
        self._closing = asyncio.get_running_loop().run_in_executor(self._pool, self._let_go)
        self._pool.shutdown(wait=False)
        await asyncio.wait([self._closing], timeout=timeout_s)
        return self.gone

    async def _bring_up(self) -> None:
        try:
            reader = await asyncio.get_running_loop().run_in_executor(self._pool, self._load_now)
        except Exception as error:  # whatever the bindings raise, the rules go on reading and the state tells
            self._fail(str(error) or type(error).__name__)
        else:
            if self.state is ModelState.LOADING:
                self.state = ModelState.READY
                log.info("model.ready", reader=reader.name, seconds=round(self._load_s, 2))
        finally:
            self._loaded.set()

    def _load_now(self) -> ClosingReader:
        began = time.monotonic()
        self._model = self._load(self._config)
        self._load_s = time.monotonic() - began
        return self._model

    async def _read_one(self, text: str, profile: Profile, labels: Labels) -> Verdict:
        return (await self.call(lambda reader: reader.read([text], profile, labels)))[0]

    def read_now(self, text: str, profile: Profile, labels: Labels) -> Verdict:
        """One line, in the model's own thread: by the model when it can, else by the rules."""
        if self.state is ModelState.READY:
            try:
                return self._read_with_model(text, profile, labels)
            except ModelError as error:
                self._fail(str(error))
        return self._fallback.read([text], profile, labels)[0]

    def _read_with_model(self, text: str, profile: Profile, labels: Labels) -> Verdict:
        if self._model is None:
            raise ModelError("the model has been let go")
        began = time.monotonic()
        verdict = self._model.read([text], profile, labels)[0]
        self.seconds += time.monotonic() - began
        self.readings += 1
        return verdict

    def _fail(self, reason: str) -> None:
        self.state, self.reason = ModelState.FAILED, reason
        log.error("model.failed", reason=reason, reading_by=self._fallback.name)

    def _let_go(self) -> None:
        model, self._model = self._model, None
        if model is not None:
            model.close()
