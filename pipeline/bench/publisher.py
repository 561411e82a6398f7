"""The plant of the MQTT bench: a process of its own that publishes lines until the broker has them all.

`python -m pipeline.bench.publisher PORT TOPIC COUNT FIRST`
"""

from __future__ import annotations

import subprocess
import sys
import threading
from datetime import datetime

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode

from pipeline.bench.lines import lines
from schemas.errors import AndonError

CONNECT_S = 10.0
PUBLISH_S = 90.0
IN_FLIGHT = 500


def start(port: int, topic: str, count: int, first: int) -> subprocess.Popen[str]:
    """Begin to publish: returns once it is connected. `finish` waits for the end."""
    command = [sys.executable, "-m", "pipeline.bench.publisher", str(port), topic, str(count), str(first)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()  # empty when it failed: `finish` says why
    return process


def finish(process: subprocess.Popen[str]) -> None:
    """Return once every line is confirmed. Raises AndonError when that fails."""
    try:
        _, said = process.communicate(timeout=PUBLISH_S)
    except subprocess.TimeoutExpired as error:
        process.kill()
        process.communicate()
        raise AndonError(f"bench: the lines were not published within {PUBLISH_S:g} s") from error
    if process.returncode != 0:
        raise AndonError(f"bench: the publisher failed: {said.strip()[-500:]}")


def main() -> None:
    port, topic, count, first = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    client = paho.Client(CallbackAPIVersion.VERSION2, client_id="bench-plant", protocol=paho.MQTTv311)
    client.max_inflight_messages_set(IN_FLIGHT)
    confirmed, connected, done = 0, threading.Event(), threading.Event()

    def on_publish(*_: object) -> None:
        nonlocal confirmed
        confirmed += 1
        if confirmed == count:
            done.set()

    client.on_connect = lambda *_: connected.set()
    client.on_publish = on_publish
    client.connect("127.0.0.1", port)
    client.loop_start()
    if not connected.wait(CONNECT_S):
        sys.exit("no answer from the broker")
    print("connected", flush=True)
    for line in lines(count, datetime.now().astimezone(), first):
        if client.publish(topic, line, qos=1).rc != MQTTErrorCode.MQTT_ERR_SUCCESS:
            sys.exit("the connection to the broker was lost")
    if not done.wait(PUBLISH_S):
        sys.exit(f"{confirmed} of {count} lines were confirmed")
    client.disconnect()
    client.loop_stop()


if __name__ == "__main__":
    main()
