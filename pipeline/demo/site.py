"""The demo's site file with what only the running demo knows."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

_PORT = "port: 1883"
_FILES = ("codes.csv",)


def write_site(folder: Path, port: int) -> Path:
    """Writes the demo's site file and what it names into `folder`, for a broker at `port`; returns its path.

    The store lies in the same folder, so that nothing is left behind when the folder goes.
    """
    here = resources.files(__package__)
    for name in _FILES:
        (folder / name).write_bytes(here.joinpath(name).read_bytes())
    path = folder / "site.yaml"
    path.write_text(site_text(port), encoding="utf-8")
    return path


def site_text(port: int) -> str:
    """The text of the demo's site file for a broker at `port`."""
    text = resources.files(__package__).joinpath("site.yaml").read_text(encoding="utf-8")
    return text.replace(_PORT, f"port: {port}")
