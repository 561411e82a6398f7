"""The header reader refuses what is no model, and never believes a length it reads."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_fakes import gguf

from pipeline.model.gguf import BadGguf, read_header

GOOD = gguf(
    {"general.architecture": "llama", "llama.block_count": 2}, [("a", 8, 0), ("b", 8, 32)], b"\0" * 64
)


def put(folder: Path, data: bytes) -> Path:
    path = folder / "model.gguf"
    path.write_bytes(data)
    return path


def test_reads_values_and_the_size_that_the_tensors_ask_for(tmp_path: Path) -> None:
    header = read_header(put(tmp_path, GOOD))
    assert header.text("general.architecture") == "llama"
    assert header.number("llama.block_count") == 2
    assert header.tensors == 2
    assert header.expected_bytes == len(GOOD)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"PK\x03\x04 a zip file", id="zip"),
        pytest.param(GOOD[:4], id="magic alone"),
        pytest.param(GOOD[:40], id="cut in the header"),
        pytest.param(b"GGUF" + struct.pack("<IQQ", 1, 0, 0), id="version 1"),
        pytest.param(b"GGUF" + struct.pack("<IQQ", 3, 2**60, 0), id="absurd count of tensors"),
        pytest.param(b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2**62), id="absurd length of a key"),
        pytest.param(
            b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1) + b"k" + struct.pack("<I", 99), id="unknown type"
        ),
        pytest.param(
            b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 2) + b"\xff\xfe" + b"\0" * 8, id="key that is no text"
        ),
    ],
)
def test_refuses(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(BadGguf):
        read_header(put(tmp_path, data))


@given(tail=st.binary(max_size=400))
def test_arbitrary_bytes_are_a_header_or_bad(tmp_path_factory: pytest.TempPathFactory, tail: bytes) -> None:
    path = put(tmp_path_factory.mktemp("gguf"), b"GGUF\x03\0\0\0" + tail)
    try:
        read_header(path)
    except BadGguf:
        pass
    finally:
        path.unlink()
        path.parent.rmdir()


@given(cut=st.integers(min_value=0, max_value=len(GOOD) - 1))
def test_a_file_cut_anywhere_is_bad_or_known_to_be_short(
    tmp_path_factory: pytest.TempPathFactory, cut: int
) -> None:
    path = put(tmp_path_factory.mktemp("gguf"), GOOD[:cut])
    try:
        assert read_header(path).expected_bytes > cut
    except BadGguf:
        pass
    finally:
        path.unlink()
        path.parent.rmdir()
