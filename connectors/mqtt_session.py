"""What an MQTT session means to us, without a network: ack order, subscriptions, reason codes, back-off."""

from __future__ import annotations

import random
import ssl
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

# MQTT 5.0, 2.4: codes from here on are failures. MQTT 3.1.1 (3.9.3) uses the same bit for a refused
# subscription.
FAILURE = 0x80

PROTOCOL_ERROR = 0x82
UNSUPPORTED_VERSION = 0x84
SESSION_TAKEN_OVER = 0x8E

# CONNACK and DISCONNECT codes after which trying again is useless, and what to do (MQTT 5.0, 3.2.2.2).
_ADVICE = {
    UNSUPPORTED_VERSION: "the broker does not speak this version (set protocol: '5' or '3.1.1'), or is none",
    0x85: "the broker does not accept the client id: set another client_id for this source",
    0x86: "check username and password of this source",
    0x87: "check username, password or client certificate of this source, and the broker's ACL",
    0x8A: "the broker has banned this client: ask its administrator",
    0x8C: "the broker wants an authentication method that andon lacks: use a password or a certificate",
    0x95: "the broker finds our packet too large: shorten client_id or the list of topics",
    0x9C: "the broker sends us to another server: set host to that one",
    0x9D: "the broker has moved: set host to its new address",
}


def advice(code: int) -> str | None:
    """What to do about a refusal with this reason code;

    None when it may pass by itself and is tried again.
    """
    return _ADVICE.get(code)


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits between attempts: doubled from `first_s` to `longest_s`, each shortened at random by up to a
    half, so that a plant's gateways do not come back in step."""

    first_s: float = 1.0
    longest_s: float = 60.0

    def delay_s(self, failures: int) -> float:
        """How long to wait after the `failures`-th failure in a row (from 1)."""
        # 2**16 first waits are longer than any sensible longest_s; more would overflow one day.
        full = min(self.longest_s, self.first_s * 2.0 ** min(failures - 1, 16))
        return full * random.uniform(0.5, 1.0)


@dataclass(frozen=True, slots=True)
class LinkOptions:
    """Everything a connection to the broker needs, secrets and files read."""

    host: str
    port: int
    client_id: str
    filters: Mapping[str, int]  # topic filter to QoS
    mqtt5: bool = True
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    tls: ssl.SSLContext | None = None
    keepalive_s: int = 30
    session_expiry_s: int = 86_400
    receive_maximum: int = 200
    backoff: Backoff = Backoff()

    @property
    def broker(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def no_answer_hint(self) -> str:
        """What to look at when CONNECT gets no answer: TLS 1.3 often cannot say why."""
        if self.tls is None:
            return "is this an MQTT port, and should tls: be set?"
        return "is this an MQTT port, and does the broker want a client certificate (tls: cert, key)?"

    @property
    def session(self) -> str:
        """Name of the session at the broker: another host or client id is another session."""
        return f"{self.broker}/{self.client_id}"


class Cause(StrEnum):
    """Why a connection ended, or was not made."""

    ASKED = "asked"  # we closed it
    UNREACHABLE = "unreachable"  # no connection, no TLS, or no answer to CONNECT
    REFUSED = "refused"  # CONNACK with a failure
    CLOSED = "closed"  # the broker closed it without a word
    SENT_AWAY = "sent_away"  # the broker closed it with a reason code
    SILENT = "silent"  # nothing heard for one and a half keep-alives
    BROKEN = "broken"  # what came in could not be read


@dataclass(frozen=True, slots=True)
class Ending:
    """How one connection (or the attempt at one) ended.

    `lived_s` counts from CONNACK, 0 when there was none.
    """

    cause: Cause
    text: str
    code: int = 0
    lived_s: float = 0.0


class AckWindow:
    """Packet ids of one connection that are not acknowledged yet, in the order they arrived.

    MQTT wants PUBACKs in the order of the PUBLISHes (MQTT 5.0, 4.6), so an id is only given out for sending
    once all that arrived before it are settled as well.
    """

    def __init__(self) -> None:
        self._order: deque[int] = deque()
        self._open: set[int] = set()
        self._settled: set[int] = set()

    def arrive(self, mid: int) -> bool:
        """Note an arrival. False when this id is still open: then it is the same message, sent again."""
        if mid in self._open:
            return False
        self._order.append(mid)
        self._open.add(mid)
        return True

    def settle(self, mids: Iterable[int]) -> list[int]:
        """Note that these are on disk; returns what may now be acknowledged, in order.

        Unknown ids are ignored.
        """
        self._settled.update(mid for mid in mids if mid in self._open)
        ready = []
        while self._order and self._order[0] in self._settled:
            mid = self._order.popleft()
            self._settled.discard(mid)
            self._open.discard(mid)
            ready.append(mid)
        return ready

    def __len__(self) -> int:
        return len(self._order)


class Subscriptions:
    """Which filters we want, and which the broker is known to hold for our session.

    `held` is replaced, never changed in place, so that another thread may read it.
    """

    def __init__(self, wanted: Mapping[str, int], held: Mapping[str, int]) -> None:
        self.wanted = dict(wanted)
        self.held: Mapping[str, int] = dict(held)
        self.expected = bool(held)
        self._refused: set[str] = set()

    def on_session(self, present: bool) -> bool:
        """Note a new connection. Returns whether a session that should have been there is lost."""
        lost = self.expected and not present
        if not present:
            self.held = {}
        self.expected = True
        self._refused = set()
        return lost

    def missing(self) -> dict[str, int]:
        """What is to be subscribed: everything that the broker does not hold with the wanted QoS.

        A filter is subscribed once a session, since each time brings its retained messages again.
        """
        return {name: qos for name, qos in self.wanted.items() if self.held.get(name) != qos}

    def surplus(self) -> list[str]:
        """What the broker holds and nobody wants any more."""
        return [name for name in self.held if name not in self.wanted]

    def on_granted(self, asked: Mapping[str, int], codes: Sequence[int]) -> None:
        """Note the broker's answer, one reason code a filter, in the order they were asked for."""
        granted = {
            name: qos for (name, qos), code in zip(asked.items(), codes, strict=True) if code < FAILURE
        }
        self._refused.update(name for name in asked if name not in granted)
        self.held = {**self.held, **granted}

    def on_released(self, names: Iterable[str]) -> None:
        """Note that these are unsubscribed."""
        gone = set(names)
        self.held = {name: qos for name, qos in self.held.items() if name not in gone}

    @property
    def all_refused(self) -> bool:
        return self._refused >= set(self.wanted)


# A connection shorter than this after CONNACK did not get going.
SHORT_LIVED_S = 10.0

# So many in a row are no bad luck. Two clients with one id and a back-off of a second get there in ten
# seconds.
SHORT_LIVED_MAX = 5


class Streak:
    """Counts connections in a row that the broker accepted and that ended at once for the same cause.

    MQTT 3.1.1 has no reason code for "another client took your session": a broker that keeps accepting and
    cutting is all one sees of it.
    """

    def __init__(self) -> None:
        self._cause: Cause | None = None
        self._length = 0

    def add(self, ending: Ending) -> bool:
        """Note an ending. True when there have been too many of its kind."""
        if ending.cause not in {Cause.CLOSED, Cause.BROKEN} or ending.lived_s > SHORT_LIVED_S:
            self._cause, self._length = None, 0
            return False
        self._length = self._length + 1 if ending.cause is self._cause else 1
        self._cause = ending.cause
        return self._length >= SHORT_LIVED_MAX
