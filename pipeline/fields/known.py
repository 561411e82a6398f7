"""Lists of known values kept in CSV files beside the site file."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from pipeline.fields.definition import FieldConfig, KnownCodes
from schemas.extraction import Severity


@dataclass(frozen=True, slots=True)
class KnownCode:
    """One row of a known list: the code as written, its meaning, the severity the list gives it (if any)."""

    code: str
    description: str = ""
    severity: Severity | None = None


def read(listed: KnownCodes, base: Path) -> dict[str, KnownCode]:
    """The rows of the CSV file by code. `base` is the folder of the site file.

    Raises ValueError, naming file and line, when the file cannot be read, lacks the column, holds no codes or
    states an unknown severity.
    """
    path = base / listed.csv
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            dialect = _dialect(file.readline())
            file.seek(0)
            reader = csv.DictReader(file, dialect=dialect)
            rows = {
                row.code: row
                for line, fields in enumerate(reader, 2)
                if (row := _row(fields, listed, path, line))
            }
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path}: cannot be read as a UTF-8 CSV file: {error}") from error
    if not rows:
        raise ValueError(f"{path}: holds no codes; a field with an empty known list could accept nothing")
    return rows


def _dialect(header: str) -> type[csv.Dialect]:
    """Comma or semicolon, by the header: spreadsheets of German sites write the latter."""

    class Found(csv.excel):
        delimiter = ";" if header.count(";") > header.count(",") else ","

    return Found


def _row(fields: dict[str, str | None], listed: KnownCodes, path: Path, line: int) -> KnownCode | None:
    if listed.column not in fields:
        raise ValueError(f"{path}:1: no column {listed.column!r}; the first row must name the columns")
    code = (fields[listed.column] or "").strip()
    severity = (fields.get("severity") or "").strip().lower()
    if severity and severity not in set(Severity):
        raise ValueError(f"{path}:{line}: severity {severity!r} is none of {', '.join(Severity)}")
    if not code:
        return None
    return KnownCode(
        code, (fields.get("description") or "").strip(), Severity(severity) if severity else None
    )


def resolved(config: FieldConfig, base: Path) -> FieldConfig:
    """The definition with the known values of its CSV file in place. Raises ValueError as `read` does."""
    if not isinstance(config.known, KnownCodes):
        return config
    return config.model_copy(update={"known": sorted(read(config.known, base))})
