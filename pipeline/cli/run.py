"""`andon run`: the service."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
from pathlib import Path
from typing import Annotated

import typer

from pipeline import config
from pipeline.cli.output import WELL, SiteArgument
from pipeline.notify import Notifier
from pipeline.telemetry import Level, configure_logging
from pipeline.wiring import App


def run(
    site: SiteArgument,
    log_level: Annotated[Level, typer.Option(help="What is logged, on stderr.")] = "info",
) -> None:
    """Run the service: sources to sinks, until SIGTERM (or Ctrl-C) drains it."""
    configure_logging(log_level)
    if not asyncio.run(_serve(config.load(Path(site)))):
        # Everything is stored and closed, but the model's thread is inside C code, which nothing can end and
        # Python would wait for.
        logging.shutdown()
        os._exit(WELL)


async def _serve(site: config.Site) -> bool:
    """Run to the end of the drain; False when the model's thread is still at work then."""
    async with App(site, Notifier.from_environment()) as app:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, app.service.stop.set)
        await app.service.run()
    return app.model.gone
