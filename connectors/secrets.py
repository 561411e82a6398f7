"""Reads secrets where the site file says they are. A secret never enters a message, a log or an exception."""

from __future__ import annotations

import os
import ssl
import stat
from pathlib import Path

from connectors.base import Secret
from schemas.errors import SecretError

# A password, a token or a header; a larger file is surely another file.
SECRET_BYTES = 64 * 1024


def read_secret(secret: Secret, base: Path = Path()) -> str:
    """The secret's text without its final line break. Relative paths are taken from `base`, the site
    file's folder.

    Raises SecretError, whose message says what to do.
    """
    path = secret_path(secret, base)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise SecretError(_advice(path, error)) from None
    if len(raw) > SECRET_BYTES:
        raise SecretError(
            f"{path} is larger than {SECRET_BYTES} bytes: it holds something else than a secret"
        )
    try:
        text = raw.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        raise SecretError(f"{path} is not UTF-8 text: write the secret, and nothing else, into it") from None
    if not text:
        raise SecretError(f"{path} is empty: write the secret, and nothing else, into it")
    return text


def secret_path(secret: Secret, base: Path = Path()) -> Path:
    """Where the secret lies.

    Raises SecretError when it is a systemd credential and systemd handed none over.
    """
    if secret.file is not None:
        return base / secret.file
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    if not folder:
        raise SecretError(
            f"the credential {secret.credential} comes from systemd, and $CREDENTIALS_DIRECTORY is not set: "
            f"add LoadCredential={secret.credential}:PATH to the unit, or use file: PATH when running by hand"
        )
    return Path(folder) / str(secret.credential)


def exposure(secret: Secret, base: Path = Path()) -> str | None:
    """A warning when everybody on this machine may read the secret, else None."""
    path = secret_path(secret, base)
    try:
        mode = path.stat().st_mode
    except OSError:
        return None
    if mode & stat.S_IROTH:
        return f"every user of this machine can read {path}: chmod 640 {path}"
    return None


def tls_context(
    ca: str | None, cert: str | None = None, key: str | None = None, *, base: Path = Path()
) -> ssl.SSLContext:
    """A client's TLS settings: server verified against `ca` (PEM) or the system's store, TLS 1.2 or later.

    `cert` and `key` are our own certificate (PEM) for brokers that ask for one. Raises SecretError naming the
    file.
    """
    context = _verifying_context(ca, base)
    if cert is not None:
        certificate, private = base / cert, None if key is None else base / key
        for path in (certificate, private):
            if path is not None:
                _must_be_readable(path)
        try:
            context.load_cert_chain(certificate, private)
        except ssl.SSLError:
            where = certificate if private is None else f"{certificate} and {private}"
            raise SecretError(
                f"{where} are no matching PEM certificate and (unencrypted) private key: check both files"
            ) from None
    return context


def _verifying_context(ca: str | None, base: Path) -> ssl.SSLContext:
    if ca is None:
        return ssl.create_default_context()
    path = base / ca
    _must_be_readable(path)
    try:
        return ssl.create_default_context(cafile=str(path))
    except ssl.SSLError:
        raise SecretError(
            f"{path} holds no PEM certificate: ca: names the certificate authority's file"
        ) from None


def _must_be_readable(path: Path) -> None:
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise SecretError(_advice(path, error)) from None


def _advice(path: Path, error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return f"{path} does not exist: create it, or correct its path in the site file"
    if isinstance(error, PermissionError):
        return (
            f"{path} cannot be read by user id {os.geteuid()}: make that its owner, or let its group read it"
        )
    if isinstance(error, IsADirectoryError):
        return f"{path} is a folder: name the file in it"
    return f"{path} cannot be read: {error.strerror or type(error).__name__}"
