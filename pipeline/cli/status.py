"""`andon status`: what is going on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipeline import config, control
from pipeline.cli.output import JsonFlag, Out, SiteArgument
from pipeline.commands import flat, standing
from pipeline.store.lock import holder
from pipeline.wiring import viewed_store


def status(site: SiteArgument, as_json: JsonFlag = False) -> None:
    """What is going on: sources, model, backlog, tickets. Without a service: how the store stands."""
    record = _status(config.load(Path(site)))
    Out(as_json).record(record if as_json else flat(record))


def _status(site: config.Site) -> dict[str, Any]:
    try:
        return {"service": "running", **control.call(site.socket_path, "status")}
    except control.ServiceNotRunning:
        store = viewed_store(site)
        owner = holder(store.path)
        service = "not running" if owner is None else f"process {owner} does not answer (yet)"
        try:
            return {"service": service, "site": site.site, **standing(store)}
        finally:
            store.close()
