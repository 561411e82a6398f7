"""A real HTTP ticket server with the faults of real ones: busy answers, and answers lost after creating."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit


class TicketServer:
    """`with TicketServer() as server:` listens on `server.url`.

    `busy` is the share of requests answered 503, `lossy` the share whose connection is cut after the ticket
    was created. With `idempotent` the same Idempotency-Key gives the same ticket; without it every POST
    makes a new one. `created` counts tickets by key, however they came about. GET /tickets?key=K finds them.
    Once `token` is set, whoever does not send it as his Authorization is answered 401.
    """

    token: str | None = None

    def __init__(self, busy: float = 0.0, lossy: float = 0.0, idempotent: bool = True, seed: int = 1) -> None:
        self.busy, self.lossy, self.idempotent = busy, lossy, idempotent
        self.random = random.Random(seed)
        self.lock = threading.Lock()
        self.tickets: dict[str, list[dict[str, Any]]] = {}
        self.created: Counter[str] = Counter()
        self.requests = 0
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                owner.post(self)

            def do_GET(self) -> None:
                owner.get(self)

            def log_message(self, format: str, *args: object) -> None:
                return

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_address[1]}/tickets"

    def __enter__(self) -> TicketServer:
        self.thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()

    def post(self, request: BaseHTTPRequestHandler) -> None:
        body = json.loads(request.rfile.read(int(request.headers["Content-Length"])))
        key = request.headers.get("Idempotency-Key") or body["key"]
        answer: object
        with self.lock:
            self.requests += 1
            if self.token is not None and request.headers["Authorization"] != self.token:
                answer, status = {"error": "token expired"}, 401
            elif self.random.random() < self.busy:
                answer, status = {"error": "busy"}, 503
            else:
                answer, status = self._create(key, body), 201
            lost = status == 201 and self.random.random() < self.lossy
        if lost:
            request.close_connection = True
            request.connection.close()
            return
        self._answer(request, status, answer)

    def _create(self, key: str, body: dict[str, Any]) -> dict[str, Any]:
        known = self.tickets.setdefault(key, [])
        if not known or not self.idempotent:
            known.append({"id": f"T{sum(self.created.values()) + 1}", "key": key, "body": body})
            self.created[key] += 1
        return known[0]

    def get(self, request: BaseHTTPRequestHandler) -> None:
        key = parse_qs(urlsplit(request.path).query).get("key", [""])[0]
        with self.lock:
            found = list(self.tickets.get(key, []))
        self._answer(request, 200, found)

    @staticmethod
    def _answer(request: BaseHTTPRequestHandler, status: int, answer: object) -> None:
        payload = json.dumps(answer).encode()
        try:
            request.send_response(status)
            request.send_header("Content-Type", "application/json")
            request.send_header("Content-Length", str(len(payload)))
            request.end_headers()
            request.wfile.write(payload)
        except ConnectionError:
            return  # the gateway was killed while it waited
