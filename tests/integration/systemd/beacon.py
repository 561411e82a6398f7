"""A service that only loads the model and tells systemd how it is: what a hardened unit has to allow.

`python beacon.py FOLDER`: while FOLDER/stalled exists, a stage counts as stalled.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

from pipeline.model.llama import LlamaRuntime
from pipeline.model.options import ModelConfig
from pipeline.notify import Notifier
from pipeline.telemetry import configure_logging

# Several pings per WatchdogSec of the test.
PING_S = 0.5


async def main(folder: Path) -> None:
    configure_logging()
    notifier = Notifier.from_environment()
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    beat = asyncio.create_task(heartbeat(notifier, folder / "stalled"))
    runtime = await asyncio.to_thread(LlamaRuntime.open, ModelConfig())
    (folder / "written").write_text(runtime.digest)
    notifier.ready(f"model {runtime.digest[:12]} is loaded")
    await stop.wait()
    notifier.stopping("draining")
    beat.cancel()
    runtime.close()


async def heartbeat(notifier: Notifier, stalled: Path) -> None:
    while True:
        if not await asyncio.to_thread(stalled.exists):
            notifier.watchdog()
        await asyncio.sleep(PING_S)


asyncio.run(main(Path(sys.argv[1])))
