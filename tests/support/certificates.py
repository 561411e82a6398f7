"""A certificate authority, a server's and a client's certificate, made with openssl."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import needs


@dataclass(frozen=True)
class Certificates:
    """PEM files in one folder. The server's names are localhost and 127.0.0.1."""

    folder: Path

    def path(self, name: str) -> str:
        return str(self.folder / name)

    @property
    def ca(self) -> str:
        return self.path("ca.crt")


def make_certificates(folder: Path) -> Certificates:
    """ca.crt, server.crt, server.key, client.crt, client.key, and other-ca.crt that signed none of them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("ca", "other-ca"):
        _openssl(
            folder, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}",
            "-keyout", f"{name}.key", "-out", f"{name}.crt",
        )  # fmt: skip
    (folder / "server.ext").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
    (folder / "client.ext").write_text("extendedKeyUsage=clientAuth\n")
    for name in ("server", "client"):
        _openssl(
            folder, "req", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}",
            "-keyout", f"{name}.key", "-out", f"{name}.csr",
        )  # fmt: skip
        _openssl(
            folder, "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key",
            "-CAcreateserial", "-days", "2", "-extfile", f"{name}.ext", "-out", f"{name}.crt",
        )  # fmt: skip
    return Certificates(folder)


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run([needs.program("openssl"), *arguments], cwd=folder, check=True, capture_output=True)
