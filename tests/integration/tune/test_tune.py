"""Tuning for real, a few steps of it: torch, the default model, and llama.cpp reading what came out."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from model_fakes import LABELS, PROFILE

from pipeline.cli import main
from pipeline.model import adapter, registry
from pipeline.model.llama import LlamaRuntime
from pipeline.model.options import ModelConfig
from pipeline.tune import run
from pipeline.tune.grammar import load
from pipeline.tune.network import Network
from pipeline.tune.samples import Course
from pipeline.tune.schemas import own
from pipeline.tune.train import Progress, Settings, measure, train
from pipeline.tune.vocabulary import Vocabulary
from schemas.errors import ModelMissing

BASE = registry.locate(ModelConfig())
STEPS = 4
ADAPTER_BYTES_MAX = 12_000_000
SETTINGS = Settings(steps=STEPS, rate=3e-3, warm_up=1)


class Stopped(Exception):
    pass


@pytest.fixture(scope="module")
def course() -> Course:
    return Course(load()[:20], own(PROFILE, LABELS), Vocabulary(BASE), 3, 2)


@pytest.fixture(scope="module")
def tuned(course: Course, tmp_path_factory: pytest.TempPathFactory) -> Network:
    network = Network(BASE, SETTINGS.seed)
    train(network, course, SETTINGS, tmp_path_factory.mktemp("whole") / "tune.pt", lambda _: None)
    return network


def stop_at(step: int, progress: Progress) -> None:
    if progress.step == step:
        raise Stopped


def test_a_run_that_was_stopped_ends_where_a_whole_one_does(
    course: Course, tuned: Network, tmp_path: Path
) -> None:
    checkpoint = tmp_path / "tune.pt"
    with pytest.raises(Stopped):
        train(
            Network(BASE, SETTINGS.seed),
            course,
            SETTINGS,
            checkpoint,
            lambda done: stop_at(2, done),
            save_every_s=0,
        )
    network, seen = Network(BASE, SETTINGS.seed), []
    train(network, course, SETTINGS, checkpoint, lambda done: seen.append(done.step))
    assert seen == [3, 4]
    for name, matrix in tuned.adapter().items():
        np.testing.assert_allclose(network.adapter()[name], matrix, atol=1e-5, err_msg=name)


def test_another_runs_checkpoint_is_not_taken(course: Course, tmp_path: Path) -> None:
    checkpoint = tmp_path / "tune.pt"
    train(
        Network(BASE, SETTINGS.seed),
        course,
        dataclasses.replace(SETTINGS, steps=1),
        checkpoint,
        lambda _: None,
    )
    seen: list[int] = []
    other = dataclasses.replace(SETTINGS, steps=1, seed=8)
    train(Network(BASE, SETTINGS.seed), course, other, checkpoint, lambda done: seen.append(done.step))
    assert seen == [1]


def test_only_the_adapter_learns_and_it_does(course: Course, tuned: Network) -> None:
    before, after = (measure(network, course, 2) for network in (Network(BASE, SETTINGS.seed), tuned))
    assert after.loss < before.loss
    untouched = Network(BASE, SETTINGS.seed)
    for one, two in zip(tuned.adapters, untouched.adapters, strict=True):
        assert torch.equal(one.weight, two.weight)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def made(course: Course, tuned: Network, tmp_path_factory: pytest.TempPathFactory) -> adapter.Adapter:
    path = tmp_path_factory.mktemp("adapter") / "reader.gguf"
    run.write(tuned, path)
    card = {
        "base": {"sha256": registry.sha256(BASE)},
        "adapter": {"sha256": registry.sha256(path)},
        "reference": run.reference(tuned, course),
    }
    path.with_suffix(".json").write_text(json.dumps(card), "utf-8")
    found = adapter.Adapter.shipped(path)
    assert found is not None
    return found


def test_the_merged_model_answers_as_the_tuned_network(made: adapter.Adapter, tmp_path: Path) -> None:
    """Also the order of rotary pairs, the head's sharing and Q8_0: any of them wrong shows here."""
    config = ModelConfig(folder=str(tmp_path))
    base = registry.check(config)
    path = adapter.merged(made, base, config)
    assert adapter.merged(made, base, config) == path
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    runtime = LlamaRuntime.open(ModelConfig(path=str(path)))
    try:
        assert adapter.check(made, runtime) > 0.995
    finally:
        runtime.close()
    plain = LlamaRuntime.open(ModelConfig(path=str(base.path)))
    try:
        with pytest.raises(ModelMissing, match="does not answer as the adapter did"):
            adapter.check(made, plain)
    finally:
        plain.close()


def test_what_the_adapter_does_not_touch_stays_byte_for_byte(made: adapter.Adapter, tmp_path: Path) -> None:
    path = adapter.merged(made, registry.check(ModelConfig()), ModelConfig(folder=str(tmp_path)))
    base, merged = gguf.GGUFReader(BASE), gguf.GGUFReader(path)
    kinds = {tensor.name: tensor.tensor_type for tensor in merged.tensors}
    for one, two in zip(base.tensors, merged.tensors, strict=True):
        assert one.name == two.name
        if not one.name.startswith("blk.") or "norm" in one.name:
            assert kinds[one.name] == one.tensor_type
            assert np.array_equal(one.data, two.data)
        else:
            assert kinds[one.name] == gguf.GGMLQuantizationType.Q8_0


def test_an_adapter_of_another_base_is_refused(made: adapter.Adapter) -> None:
    base = registry.check(ModelConfig())
    assert made.fits(base)
    assert not made.fits(dataclasses.replace(base, sha256="0" * 64))


def test_a_changed_adapter_file_is_refused(made: adapter.Adapter, tmp_path: Path) -> None:
    path = tmp_path / "reader.gguf"
    path.write_bytes(made.path.read_bytes()[:-4] + b"\0\0\0\1")
    path.with_suffix(".json").write_text(json.dumps(dict(made.card)), "utf-8")
    with pytest.raises(ModelMissing, match="not the file its model card describes"):
        adapter.Adapter.shipped(path)


def test_a_folder_that_cannot_be_written_is_named(made: adapter.Adapter, tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(ModelMissing, match=r"model\.folder"):
        adapter.merged(made, registry.check(ModelConfig()), ModelConfig(folder=str(blocked / "models")))


def test_the_command_writes_an_adapter_with_its_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run, "BATCH_LINES", 2)
    monkeypatch.setattr(run, "MEASURED_BATCHES", 1)
    lines = tmp_path / "corrected.jsonl"
    row = {
        "line": "mixer 4 fault E17",
        "fields": {"device": "mixer 4", "error_code": "E17"},
        "severity": "error",
    }
    lines.write_text(json.dumps(row) + "\n", "utf-8")
    out = tmp_path / "reader.gguf"
    command = ["model", "tune", "--steps", "1", "--out", out, "--work", tmp_path, "--lines", lines, "--json"]
    monkeypatch.setattr(sys, "argv", ["andon", *map(str, command)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (0, None)
    told = json.loads(capsys.readouterr().out)
    card = json.loads(Path(told["card"]).read_text("utf-8"))
    assert card["adapter"]["sha256"] == registry.sha256(out)
    assert card["data"]["corrected_lines"] == 1
    assert card["data"]["held_out"]
    assert out.stat().st_size < ADAPTER_BYTES_MAX
    found = adapter.Adapter.shipped(out)
    assert found is not None and found.fits(registry.check(ModelConfig()))


def test_without_torch_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.startswith("pipeline.tune")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr(sys, "argv", ["andon", "model", "tune"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 3
    assert "pip install 'andon[tune]'" in capsys.readouterr().err
