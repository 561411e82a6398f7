"""The service beside a ticket system that does not want it, or not any more."""

from __future__ import annotations

import urllib.request
from pathlib import Path
from typing import Any

import pytest
from accounts import Look, assert_sound
from gateway import Gateway
from ports import free_port
from ticket_server import TicketServer

pytestmark = pytest.mark.timeout(120)

RULE = {"id": "hot", "when": {"text": "hot"}, "severity": "error"}


def site(server: TicketServer) -> dict[str, Any]:
    return {
        "model": {"enabled": False},
        "metrics": {"port": free_port()},
        "sources": {"line7": {"type": "file", "path": "in.log", "mode": "live"}},
        "rules": [RULE],
        "sinks": {
            "desk": {
                "type": "http",
                "url": server.url,
                "headers": {"Authorization": {"file": "token"}},
                "idempotent": True,
            }
        },
        "routes": [{"id": "all", "sink": "desk"}],
    }


def test_an_expired_token_holds_the_tickets_and_shows_it(tmp_path: Path) -> None:
    with TicketServer() as server:
        server.token = "Bearer new-token"
        gateway = Gateway(tmp_path, site(server))
        (tmp_path / "token").write_text("Bearer old-token")
        (tmp_path / "in.log").write_text("press 7 hot\n")
        look = Look(gateway.store)
        with gateway:
            gateway.until(lambda: gateway.logged("sink.misconfigured"), "the refusal is logged")
            sink = gateway.ask("status")["sinks"]["desk"]
            assert sink["state"] == "misconfigured"
            assert "answers 401" in sink["last_error"] and "token expired" in sink["last_error"]
            assert 'andon_sink_misconfigured{sink="desk"} 1.0' in metrics(gateway)
            assert gateway.stop() == 0
            assert gateway.logged("service.drain_cut") == [], "a drain does not wait for it"
            assert look.rows("SELECT state FROM outbox") == [("queued",)], (
                "nobody was asked, nothing is given up"
            )
            (tmp_path / "token").write_text("Bearer new-token")
            gateway.start()
            gateway.until(lambda: look.rows("SELECT state FROM outbox") == [("sent",)], "the ticket is made")
            assert gateway.ask("status")["sinks"]["desk"] == {"state": "ok", "last_error": None}
            assert gateway.stop() == 0
        assert list(server.created.values()) == [1]
    assert_sound(gateway.store)


def metrics(gateway: Gateway) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{gateway.metrics_port}/metrics", timeout=10) as answer:
        return str(answer.read().decode())
