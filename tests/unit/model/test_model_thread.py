"""The thread that owns the model: states with reasons, rules as the tier below, a bounded stop, no stuck
thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence

import pytest
from model_fakes import LABELS, PROFILE

from pipeline.fields.definition import Labels, Profile
from pipeline.model.options import ModelConfig
from pipeline.model.rules import RulesReader
from pipeline.model.thread import ModelState, ModelThread
from schemas.errors import ModelError, ModelMissing
from schemas.extraction import Extraction, Tier, Verdict


class FakeModel:
    """Reads by waiting for `gate`, in whatever thread it is called; fails with `error` when it has one."""

    name = "model:0123456789ab"

    def __init__(self, error: Exception | None = None) -> None:
        self.entered = threading.Event()
        self.gate = threading.Event()
        self.gate.set()
        self.error = error
        self.threads: set[str] = set()
        self.texts: list[str] = []
        self.closed = False

    def read(self, texts: Sequence[str], profile: Profile, labels: Labels) -> list[Verdict]:
        self.threads.add(threading.current_thread().name)
        self.entered.set()
        self.gate.wait(10)
        self.texts.extend(texts)
        if self.error is not None:
            raise self.error
        return [Verdict(Extraction({}, reader=self.name, tier=Tier.MODEL)) for _ in texts]

    def close(self) -> None:
        self.threads.add(threading.current_thread().name)
        self.closed = True


def thread(load: Callable[[ModelConfig], FakeModel], enabled: bool = True) -> ModelThread:
    return ModelThread(ModelConfig(enabled=enabled), RulesReader(), load)


async def read(model: ModelThread, *texts: str) -> list[Verdict]:
    return await model.read(texts, PROFILE, LABELS)


async def test_it_loads_in_the_background_and_reading_waits_for_it() -> None:
    fake, may_load = FakeModel(), threading.Event()

    def load(_: ModelConfig) -> FakeModel:
        may_load.wait(10)
        return fake

    model = thread(load)
    model.start()
    assert model.state is ModelState.LOADING
    assert model.reader.name == "rules:1"
    reading = asyncio.create_task(read(model, "a", "b"))
    await asyncio.sleep(0)
    assert not reading.done()
    may_load.set()
    assert [verdict.extraction.reader for verdict in await reading] == [fake.name, fake.name]
    assert await model.until_loaded() is ModelState.READY
    assert model.readings == 2
    assert model.seconds > 0
    assert await model.stop()
    assert fake.closed
    assert len(fake.threads) == 1  # loading, reading and closing share the one thread


@pytest.mark.parametrize(
    "error",
    [ModelMissing("no such file; do this"), RuntimeError("bindings"), OSError(5, "I/O"), KeyError("x")],
)
async def test_a_model_that_does_not_load_leaves_the_rules_and_the_reason(error: Exception) -> None:
    def load(_: ModelConfig) -> FakeModel:
        raise error

    model = thread(load)
    model.start()
    assert await model.until_loaded() is ModelState.FAILED
    assert model.reason
    assert (await read(model, "pump 1"))[0].extraction.tier is Tier.RULE
    assert model.readings == 0
    assert await model.stop()


async def test_a_model_that_fails_while_reading_leaves_the_rules() -> None:
    fake = FakeModel(ModelError("llama_decode returned -3"))
    model = thread(lambda _: fake)
    model.start()
    verdicts = await read(model, "pump 1", "pump 2")
    assert [verdict.extraction.tier for verdict in verdicts] == [Tier.RULE, Tier.RULE]
    assert model.state is ModelState.FAILED
    assert "llama_decode" in model.reason
    assert fake.texts == ["pump 1"]  # the second line was not tried on it
    await model.stop()


async def test_off_reads_by_rules_and_says_why() -> None:
    model = thread(lambda _: FakeModel(), enabled=False)
    model.start()
    assert await model.until_loaded() is ModelState.OFF
    assert model.reason == "model.enabled is false"
    assert (await read(model, "pump 1"))[0].extraction.reader == "rules:1"
    await model.stop()


async def test_a_cancelled_reader_leaves_at_most_the_line_in_hand() -> None:
    fake = FakeModel()
    model = thread(lambda _: fake)
    model.start()
    await model.until_loaded()
    fake.gate.clear()
    reading = asyncio.create_task(read(model, *(f"line {number}" for number in range(100))))
    await asyncio.to_thread(fake.entered.wait, 10)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    fake.gate.set()
    assert (await read(model, "next"))[0].extraction.reader == fake.name
    assert fake.texts == ["line 0", "next"]
    await model.stop()


async def test_stopping_is_bounded_while_a_line_hangs() -> None:
    fake = FakeModel()
    model = thread(lambda _: fake)
    model.start()
    await model.until_loaded()
    fake.gate.clear()
    reading = asyncio.create_task(read(model, "hangs"))
    await asyncio.to_thread(fake.entered.wait, 10)
    assert not await model.stop(timeout_s=0.05)
    assert not model.gone
    assert not fake.closed  # nothing frees a model under a running call
    fake.gate.set()
    await reading
    with pytest.raises(ModelError, match="stopped"):
        await read(model, "too late")


async def test_stopping_while_loading_frees_what_was_loaded() -> None:
    fake, may_load = FakeModel(), threading.Event()

    def load(_: ModelConfig) -> FakeModel:
        may_load.wait(10)
        return fake

    model = thread(load)
    model.start()
    await asyncio.sleep(0)
    stopping = asyncio.create_task(model.stop())
    await asyncio.sleep(0)
    may_load.set()
    assert await stopping
    assert fake.closed
    assert model.state is ModelState.STOPPED
    assert await model.stop()


async def test_a_piece_of_work_reads_in_the_same_thread() -> None:
    fake = FakeModel()
    model = thread(lambda _: fake)
    model.start()
    names = await model.call(
        lambda reader: [reader.read([t], PROFILE, LABELS)[0].extraction.reader for t in "ab"]
    )
    assert names == [fake.name, fake.name]
    assert model.readings == 2
    await model.stop()
