"""`andon check`: what loads, and still deserves a word."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipeline.config import check

Said = Callable[[str], list[str]]


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Said:
    monkeypatch.delenv("CREDENTIALS_DIRECTORY", raising=False)

    def say(text: str) -> list[str]:
        path = tmp_path / "site.yaml"
        path.write_text(text, encoding="utf-8")
        return [str(issue).removeprefix(f"{path}:") for issue in check(path)]

    return say


MQTT = "sources: {a: {type: mqtt, topics: [x], mode: live, %s}}"

SAID = [
    (MQTT % "", []),
    ("site: x", ["1:1: (file): warning: no sources: nothing will be read"]),
    (
        "sources: {a: {type: mqtt, topics: [x]}}",
        ["1:14: sources.a.mode: notice: observe: everything is decided and shown, nothing is sent"],
    ),
    (
        MQTT % "qos: 0",
        [
            "1:57: sources.a.qos: notice: QoS 0 promises nothing: what is lost on the way is lost; "
            "use 1 where the machines allow it"
        ],
    ),
    (
        MQTT.replace("[x]", "[x/#, x/+]") % "",
        [
            "1:41: sources.a.topics[1]: warning: overlaps topics[0] 'x/#': "
            "brokers may deliver what matches both twice"
        ],
    ),
    (MQTT % "" + "\nroutes: []", ["1:14: sources.a: warning: is live, but no route takes its alarms"]),
    (
        MQTT % "" + "\nroutes: [{id: r, sink: board}, {id: q, sink: board, sources: [a]}]",
        ["2:32: routes[1]: warning: never reached: routes[0] 'r' takes everything"],
    ),
    (
        MQTT % "" + "\nsinks: {h: {type: board}}\nroutes: [{id: r, sink: board}]",
        ["2:9: sinks.h: warning: no route leads to this sink"],
    ),
    (
        MQTT % ""
        + "\nrules: [{id: hot, severity: error, when: {text: x}}, {id: q, clears: hot7, when: {text: y}}]",
        [
            "2:70: rules[1].clears: warning: 'hot7' is no rule's id, so it is taken as a code; "
            "was 'hot' meant?"
        ],
    ),
    (MQTT % "" + "\nmodel: {path: no.gguf}", ["2:15: model.path: there is no file 'no.gguf'"]),
    (
        MQTT % "" + "\nmodel: {enabled: false}",
        ["2:18: model.enabled: notice: rules alone read; the rest goes to review"],
    ),
    (MQTT % "" + "\nmetrics: {port: null}", ["2:17: metrics.port: notice: metrics and /healthz are off"]),
    (
        MQTT % "" + "\nmetrics: {host: 0.0.0.0}",
        [
            "2:17: metrics.host: warning: whoever reaches this address can read the metrics; "
            "127.0.0.1 keeps them on this machine"
        ],
    ),
    (
        MQTT % "" + "\nsinks: {h: {type: http, url: 'https://x', body: {routing_key: R123, id: '{key}'}}}",
        [
            "2:63: sinks.h.body.routing_key: warning: looks like a secret in plain text; "
            "secrets belong in headers"
        ],
    ),
    (
        "timezone: Nowhere",
        ["1:11: timezone: unknown time zone 'Nowhere'; write it like Europe/Berlin or Asia/Shanghai"],
    ),
    (
        "sources: {a: {type: file, path: no.log, mode: live}}",
        ["1:33: sources.a.path: warning: 'no.log' does not exist (yet)"],
    ),
]


@pytest.mark.parametrize(("text", "expected"), SAID, ids=lambda value: str(value)[:60])
def test_said(text: str, expected: list[str], said: Said) -> None:
    assert said(text) == expected


def test_secrets_are_read_and_never_shown(tmp_path: Path, said: Said) -> None:
    secret = tmp_path / "secret"
    text = MQTT % "host: broker.example, username: u, password: {file: secret}"
    (missing,) = [line for line in said(text) if "plain text" not in line]
    assert (
        missing.startswith(f"1:{text.index('{file') + 1}: sources.a.password: ")
        and "does not exist" in missing
    )
    secret.write_text("hunter2\n", encoding="utf-8")
    secret.chmod(0o644)
    told = said(text)
    assert any("warning: every user of this machine can read" in line for line in told)
    assert any("warning: without tls the password crosses the network" in line for line in told)
    secret.chmod(0o600)
    assert len(said(text)) == 1
    assert "hunter2" not in "".join(told)


def test_a_systemd_credential_is_no_error_where_systemd_is_not(said: Said) -> None:
    (told,) = said(MQTT % "username: u, password: {credential: c}")
    assert told.startswith("1:75: sources.a.password: notice: ")


def test_certificates_are_looked_at(tmp_path: Path, said: Said) -> None:
    (tmp_path / "ca.pem").write_text("no certificate", encoding="utf-8")
    (told,) = said(MQTT % "tls: {ca: ca.pem}")
    assert told.startswith("1:57: sources.a.tls: ") and "holds no PEM certificate" in told
