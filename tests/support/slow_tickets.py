"""A ticket system that takes its time, so that a killed gateway leaves requests under way."""

from __future__ import annotations

import time
from http.server import BaseHTTPRequestHandler

from ticket_server import TicketServer

# Before the ticket exists, and again before the answer goes out. A kill finds either.
WORKS_S = 0.025


class SlowTicketServer(TicketServer):
    """A TicketServer that works WORKS_S on a request before the ticket exists, and as long after.

    `searches` counts how often it was asked for a ticket.
    """

    searches = 0

    def get(self, request: BaseHTTPRequestHandler) -> None:
        with self.lock:
            self.searches += 1
        super().get(request)

    def post(self, request: BaseHTTPRequestHandler) -> None:
        time.sleep(WORKS_S)
        super().post(request)

    @staticmethod
    def _answer(request: BaseHTTPRequestHandler, status: int, answer: object) -> None:
        time.sleep(WORKS_S)
        TicketServer._answer(request, status, answer)
