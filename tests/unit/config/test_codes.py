"""Code lists as spreadsheets and engineering tools write them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.config import loads
from pipeline.config.codes import CodesError, read_codes
from pipeline.fields.definition import KnownCodes
from schemas.errors import ConfigError


def read(folder: Path, data: bytes, column: str = "code") -> dict[str, str]:
    (folder / "list.csv").write_bytes(data)
    codes = read_codes(KnownCodes(csv="list.csv", column=column), folder)
    return {code.code: code.description for code in codes.values()}


@pytest.mark.parametrize(
    "data",
    [
        b"code,description\nE1,a\nE2,b\n",
        b"code;description\r\nE1;a\r\nE2;b\r\n",
        b"description\tcode\na\tE1\nb\tE2",
        b"\xef\xbb\xbfcode , description\n E1 , a \nE2,b\n,\n\n",
        b'code,description,more\n"E1","a",x\n"E2",b\n',
        b"code,description\nE1,a\nE1,a\nE2,b\n",
    ],
)
def test_delimiters_marks_blanks_and_empty_rows(tmp_path: Path, data: bytes) -> None:
    assert read(tmp_path, data) == {"E1": "a", "E2": "b"}


def test_text_that_only_looks_like_a_number_stays_as_written(tmp_path: Path) -> None:
    assert list(read(tmp_path, "Nr;Bezeichnung\n0012;Überhitzung\n".encode(), "Nr")) == ["0012"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "unknown column 'code'"),
        (b"cod,description\nE1,a\n", "unknown column 'code'; did you mean 'cod'?"),
        (b"code\n\n", "no code in column 'code'"),
        (b"code\n\xb0C\n", "row 2 is not UTF-8; save it as 'CSV UTF-8'"),
        (
            b"code,severity\nE1,error\nE2,bad\n",
            "row 3: severity is info, warning, error or critical, not 'bad'",
        ),
        (b"code,description\nE1,a\nE1,b\n", "row 3: code 'E1' stands there twice, differently"),
    ],
)
def test_what_is_wrong_with_a_list(tmp_path: Path, data: bytes, message: str) -> None:
    with pytest.raises(CodesError) as caught:
        read(tmp_path, data)
    assert str(caught.value) == message


@pytest.mark.parametrize("csv", ["missing.csv", ".", "a\\0b"])
def test_a_list_that_cannot_be_opened_is_an_error_at_its_name(csv: str) -> None:
    text = f'profiles: {{p: {{fields: {{c: {{type: code, description: x, known: {{csv: "{csv}"}}}}}}}}}}'
    with pytest.raises(ConfigError) as caught:
        loads(text)
    (issue,) = caught.value.issues
    assert (issue.path, issue.column) == ("profiles.p.fields.c.known.csv", text.index('"') + 1)
