"""`andon check --connect`: does what the site file names answer? Nothing is changed, stored or sent for
good."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path

from connectors import BoardConfig
from connectors.base import Sink, Source
from pipeline.config import Site
from pipeline.config.document import Finding
from pipeline.config.loading import load_document
from pipeline.model.reader import ModelReader
from schemas.errors import AndonError, Issue

Place = tuple[str | int, ...]


async def try_connections(path: Path) -> list[Issue]:
    """Try every source, every sink and the model: what went wrong is an error at its line, the rest a
    notice."""
    loaded = load_document(path)
    site, base = loaded.site, loaded.site.path(".")
    findings = [
        await _try(("sources", name), partial(source.build, name, base=base))
        for name, source in site.sources.items()
    ]
    findings += [
        await _try(("sinks", name), partial(sink.build, name, base=base))
        for name, sink in site.sinks.items()
        if not isinstance(sink, BoardConfig)
    ]
    return loaded.document.issues([*findings, await _try_model(site)])


async def _try(place: Place, build: Callable[[], Source | Sink]) -> Finding:
    try:
        subject = build()
        try:
            found = await subject.check()
        finally:
            await subject.close()
    except AndonError as error:
        return Finding(place, str(error), at_key=True)
    return Finding(place, found.message, at_key=True, level="notice" if found.ok else "error")


async def _try_model(site: Site) -> Finding:
    place: Place = ("model",)
    if not site.model.enabled:
        return Finding(place, "off: rules alone read", at_key=True, level="notice")
    try:
        reader = await asyncio.to_thread(ModelReader.open, site.model)
    except AndonError as error:
        return Finding(place, str(error), at_key=True)
    name = reader.name
    await asyncio.to_thread(reader.close)
    return Finding(place, f"{name} loads and reads", at_key=True, level="notice")
