"""The header of a GGUF file, read without loading it: enough to refuse a wrong or broken file with a clear
word.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (versions 2 and 3, little endian).
"""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

MAGIC = b"GGUF"
ALIGNMENT = 32  # bytes; the format's default, `general.alignment` may say otherwise
# Sane upper bounds: a header that exceeds them is garbage, and must not make us allocate by its word.
MAX_ENTRIES = 1_000_000
MAX_STRING_BYTES = 2**26
MAX_DIMENSIONS = 8

_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_STRING, _ARRAY = 8, 9
# ggml type -> (values a block, bytes a block), from ggml's type traits; types not listed are not size-
# checked.
_BLOCKS = {
    0: (1, 4),
    1: (1, 2),
    2: (32, 18),
    3: (32, 20),
    6: (32, 22),
    7: (32, 24),
    8: (32, 34),
    10: (256, 84),
    11: (256, 110),
    12: (256, 144),
    13: (256, 176),
    14: (256, 210),
    15: (256, 292),
    30: (1, 2),
}


class BadGguf(ValueError):
    """The file is no GGUF file, or its header is broken or cut off."""


@dataclass(frozen=True, slots=True)
class Header:
    """Key-value pairs of the header (arrays as their length), and the file size the tensors ask for, in
    bytes.
    """

    values: dict[str, str | int | float | bool]
    tensors: int
    expected_bytes: int

    def text(self, key: str) -> str:
        return str(self.values.get(key, ""))

    def number(self, key: str, default: int = 0) -> int:
        value = self.values.get(key, default)
        return int(value) if isinstance(value, (int, float)) else default


def read_header(path: Path) -> Header:
    """The header of `path`. Raises BadGguf for a file that is none, OSError when it cannot be read."""
    with path.open("rb") as file:
        if file.read(4) != MAGIC:
            raise BadGguf("it does not begin with the GGUF magic number")
        try:
            return _header(file)
        except (struct.error, UnicodeDecodeError, EOFError, OverflowError) as error:
            raise BadGguf("its header is broken or cut off") from error


def _header(file: BufferedReader) -> Header:
    version = _number(file, "I")
    if version not in (2, 3):
        raise BadGguf(f"its GGUF version is {version}; versions 2 and 3 are known")
    tensors, entries = _bounded(file, MAX_ENTRIES), _bounded(file, MAX_ENTRIES)
    values: dict[str, str | int | float | bool] = {}
    for _ in range(entries):
        key = _string(file)
        values[key] = _value(file, _number(file, "I"))
    end = max((_tensor_end(file) for _ in range(tensors)), default=0)
    header = Header(values=values, tensors=tensors, expected_bytes=0)
    alignment = header.number("general.alignment", ALIGNMENT) or ALIGNMENT
    start = math.ceil(file.tell() / alignment) * alignment
    return Header(values=values, tensors=tensors, expected_bytes=start + end)


def _tensor_end(file: BufferedReader) -> int:
    """Where the next tensor of the table ends, in bytes from the start of the data."""
    _string(file)
    dimensions = _number(file, "I")
    if dimensions > MAX_DIMENSIONS:
        raise BadGguf(f"a tensor has {dimensions} dimensions")
    values = math.prod(_number(file, "Q") for _ in range(dimensions))
    kind, offset = _number(file, "I"), _number(file, "Q")
    per_block, block_bytes = _BLOCKS.get(kind, (1, 0))
    return offset + values // per_block * block_bytes


def _value(file: BufferedReader, kind: int) -> str | int | float | bool:
    if kind == _STRING:
        return _string(file)
    if kind == _ARRAY:
        return _skip_array(file)
    if kind not in _SCALARS:
        raise BadGguf(f"value type {kind} is unknown")
    form = "<" + _SCALARS[kind]
    value: int | float | bool = struct.unpack(form, _exactly(file, struct.calcsize(form)))[0]
    return value


def _skip_array(file: BufferedReader) -> int:
    """Passes over an array; returns its length."""
    kind, length = _number(file, "I"), _bounded(file, MAX_ENTRIES)
    if kind in _SCALARS:
        _exactly(file, struct.calcsize("<" + _SCALARS[kind]) * length)
    elif kind == _STRING:
        for _ in range(length):
            _exactly(file, _bounded(file, MAX_STRING_BYTES))
    else:
        raise BadGguf(f"array type {kind} is unknown")
    return length


def _string(file: BufferedReader) -> str:
    return _exactly(file, _bounded(file, MAX_STRING_BYTES)).decode()


def _bounded(file: BufferedReader, limit: int) -> int:
    value = _number(file, "Q")
    if value > limit:
        raise BadGguf(f"its header counts {value}, beyond any real model")
    return value


def _number(file: BufferedReader, form: str) -> int:
    number: int = struct.unpack("<" + form, _exactly(file, struct.calcsize("<" + form)))[0]
    return number


def _exactly(file: BufferedReader, length: int) -> bytes:
    data = file.read(length)
    if len(data) != length:
        raise EOFError
    return data
