"""An MqttSource towards a scripted broker, with a back-off of milliseconds."""

from __future__ import annotations

from typing import Any

from consumer import Notices
from scripted_broker import Peer, ScriptedBroker

from connectors.mqtt import MqttSource
from connectors.mqtt_session import Backoff, LinkOptions

QUICK = Backoff(first_s=0.01, longest_s=0.02)


def options(broker: ScriptedBroker, **changes: Any) -> LinkOptions:
    return LinkOptions(
        **{
            "host": "127.0.0.1",
            "port": broker.port,
            "client_id": "andon-line7",
            "filters": {"plant/+/log": 1},
            "backoff": QUICK,
            **changes,
        }
    )


def source(broker: ScriptedBroker, **changes: Any) -> MqttSource:
    own = {key: changes.pop(key) for key in ("position", "notices", "queue_messages") if key in changes}
    own.setdefault("notices", Notices())
    return MqttSource("line7", options(broker, **changes), **own)


async def served(peer: Peer) -> None:
    await peer.accept()
    await peer.grant()
