"""Secrets are read from files and credentials, and errors say what to do without saying the secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from connectors.base import Secret
from connectors.secrets import exposure, read_secret
from schemas.errors import SecretError


@pytest.mark.parametrize(
    ("raw", "text"), [(b"abc", "abc"), (b"abc\n", "abc"), (b"abc\r\n", "abc"), (b" a b \n", " a b ")]
)
def test_a_file_without_its_last_line_break(tmp_path: Path, raw: bytes, text: str) -> None:
    (tmp_path / "s").write_bytes(raw)
    assert read_secret(Secret(file="s"), tmp_path) == text
    assert read_secret(Secret(file=str(tmp_path / "s")), Path("/elsewhere")) == text


def test_a_systemd_credential(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mqtt").write_text("abc\n")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert read_secret(Secret(credential="mqtt")) == "abc"


def test_a_credential_without_systemd_says_what_to_add(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)
    with pytest.raises(SecretError, match="LoadCredential=mqtt"):
        read_secret(Secret(credential="mqtt"))


@pytest.mark.parametrize(
    ("raw", "hint"),
    [
        (None, "does not exist: create it"),
        (b"", "is empty"),
        (b"\n", "is empty"),
        (b"\xff\xfe", "not UTF-8"),
        (b"x" * 70_000, "larger than"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, raw: bytes | None, hint: str) -> None:
    path = tmp_path / "s"
    if raw is not None:
        path.write_bytes(raw)
    with pytest.raises(SecretError, match=hint) as caught:
        read_secret(Secret(file=str(path)))
    assert str(path) in str(caught.value)


def test_a_folder_is_no_secret(tmp_path: Path) -> None:
    with pytest.raises(SecretError, match="is a folder"):
        read_secret(Secret(file=str(tmp_path)))


@pytest.mark.parametrize(("mode", "exposed"), [(0o600, False), (0o640, False), (0o644, True)])
def test_exposure(tmp_path: Path, mode: int, exposed: bool) -> None:
    path = tmp_path / "s"
    path.write_text("x")
    path.chmod(mode)
    warning = exposure(Secret(file=str(path)))
    assert (warning is not None) == exposed
    assert not exposed or "chmod 640" in str(warning)
