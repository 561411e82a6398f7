"""The demo's own site file, pointed at a test's broker, store and ticket systems."""

from __future__ import annotations

import shutil
from importlib import resources
from pathlib import Path
from typing import Any

import yaml


def demo_site(folder: Path, port: int) -> dict[str, Any]:
    """The demo's site as a document. The lists that it names lie in `folder` then, and no model reads."""
    folder.mkdir(parents=True, exist_ok=True)
    given = resources.files("pipeline.demo")
    with resources.as_file(given / "codes.csv") as codes:
        shutil.copy(codes, folder / "codes.csv")
    document: dict[str, Any] = yaml.safe_load((given / "site.yaml").read_text(encoding="utf-8"))
    for source in document["sources"].values():
        source |= {"port": port, "protocol": "5"}
    return document | {"model": {"enabled": False}}


def http_sink(url: str, *, idempotent: bool) -> dict[str, Any]:
    """A sink for a TicketServer: one that makes one ticket a key, or one that has to be searched."""
    if idempotent:
        return {"type": "http", "url": url, "idempotent": True}
    return {"type": "http", "url": url, "find": {"url": f"{url}?key={{key}}", "match": "/0/key"}}
