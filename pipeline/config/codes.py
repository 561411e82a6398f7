"""Lists of known codes, as plants keep them: CSV files from a spreadsheet or an engineering tool."""

from __future__ import annotations

import csv
import io
from dataclasses import dataclass
from pathlib import Path

from pipeline.config.words import either, quoted, unknown
from pipeline.fields.definition import KnownCodes
from schemas.extraction import Severity

BYTES_MAX = 16_000_000  # a list of 200,000 codes with descriptions
DELIMITERS = ",;\t"  # what spreadsheets write, depending on country

_SEVERITIES = tuple(severity.value for severity in Severity)


@dataclass(frozen=True, slots=True, order=True)
class Code:
    """One known code, with what its list says of it."""

    code: str
    description: str = ""
    severity: Severity | None = None


class CodesError(ValueError):
    """The list cannot be used; the message says why and, where it can, in which row."""


def read_codes(config: KnownCodes, folder: Path) -> dict[str, Code]:
    """The codes of a CSV file, by code; a relative path starts at `folder`. Raises CodesError.

    The first row names the columns. `description` and `severity` are read where they exist.
    """
    text = _text(folder / config.csv)
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=_delimiter(text))
    rows.fieldnames = [name.strip() for name in rows.fieldnames or []]
    if config.column not in rows.fieldnames:
        raise CodesError(unknown("column", config.column, filter(None, rows.fieldnames)))
    codes: dict[str, Code] = {}
    try:
        for row in rows:
            code = _code(row, config.column, rows.line_num)
            if code is not None and codes.setdefault(code.code, code) != code:
                raise CodesError(
                    f"row {rows.line_num}: code {quoted(code.code)} stands there twice, differently"
                )
    except csv.Error as error:
        raise CodesError(f"row {rows.line_num}: {error}") from None
    if not codes:
        raise CodesError(f"no code in column '{config.column}'")
    return codes


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > BYTES_MAX:
            raise CodesError(f"larger than {BYTES_MAX:,} bytes")
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = error.object[: error.start].count(b"\n") + 1
        raise CodesError(f"row {row} is not UTF-8; save it as 'CSV UTF-8'") from None
    except (OSError, ValueError) as error:
        if isinstance(error, CodesError):
            raise
        raise CodesError(getattr(error, "strerror", None) or str(error)) from None


def _delimiter(text: str) -> str:
    header = text.partition("\n")[0]
    return max(DELIMITERS, key=header.count)


def _code(row: dict[str | None, str | list[str] | None], column: str, number: int) -> Code | None:
    """One row; None when its code is empty, as in rows that spreadsheets leave at the end."""
    cell = {name: value.strip() for name, value in row.items() if name and isinstance(value, str)}
    if not cell.get(column):
        return None
    severity = cell.get("severity", "").lower()
    if severity and severity not in _SEVERITIES:
        raise CodesError(f"row {number}: severity is {either(_SEVERITIES)}, not {quoted(severity)}")
    return Code(cell[column], cell.get("description", ""), Severity(severity) if severity else None)
