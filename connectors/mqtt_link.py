"""The thread between the broker and the event loop: connects, serves, and connects again.

paho is not thread-safe where it matters: an acknowledgement handed to it from another thread can overtake a
reconnect and acknowledge another message under the same packet id. So one thread of ours owns paho's client
and its socket, and everything else reaches it through a mailbox. Reading can then also be stopped while pings
and acknowledgements go on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from connectors.base import NoticeKind
from connectors.inbox import Inbox
from connectors.mqtt_connection import Connection
from connectors.mqtt_mailbox import Counters, Mailbox, Tell
from connectors.mqtt_session import (
    SESSION_TAKEN_OVER,
    Cause,
    Ending,
    LinkOptions,
    Streak,
    Subscriptions,
    advice,
)
from schemas.errors import SourceError, SourceRefused


class Link:
    """Keeps one connection after the other to one broker, in a thread of its own, until it is stopped or
    refused.

    The inbox is ended when the thread ends, with SourceRefused when trying again is useless, and with
    SourceError when the thread died: a source never stays silent because its thread is gone.
    """

    def __init__(
        self,
        source: str,
        options: LinkOptions,
        *,
        inbox: Inbox,
        mailbox: Mailbox,
        subscriptions: Subscriptions,
        counters: Counters,
        tell: Tell,
        next_name: Callable[[], str],
    ) -> None:
        self._source = source
        self._options = options
        self._inbox = inbox
        self._mailbox = mailbox
        self._subscriptions = subscriptions
        self._counters = counters
        self._tell = tell
        self._next_name = next_name
        self._streak = Streak()
        self._failures = 0
        self._unreachable = False
        self._thread = threading.Thread(target=self._run, name=f"mqtt-{source}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def join(self, timeout_s: float) -> None:
        self._thread.join(timeout_s)

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._serve()
        except SourceError as error:
            self._counters.last_error = str(error)
            self._inbox.end(error)
        except BaseException as error:
            text = f"the network thread of source {self._source} died: {type(error).__name__}: {error}"
            self._counters.last_error = text
            died = SourceError(text)
            died.__cause__ = error
            self._inbox.end(died)
        else:
            self._inbox.end()
        finally:
            self._counters.connected = False
            self._mailbox.close()

    def _serve(self) -> None:
        while not self._mailbox.stopping.is_set():
            ending = Connection(
                self._options,
                self._next_name(),
                inbox=self._inbox,
                mailbox=self._mailbox,
                subscriptions=self._subscriptions,
                counters=self._counters,
                tell=self._tell,
            ).run()
            self._inbox.flush()
            if ending.cause is Cause.ASKED:
                return
            self._judge(ending)
            self._mailbox.stopping.wait(self._options.backoff.delay_s(self._failures))

    def _judge(self, ending: Ending) -> None:
        """Say what happened, and decide whether to go on. Raises SourceRefused or SourceError when not."""
        self._counters.last_error = f"{self._options.broker}: {ending.text}"
        self._failures = 1 if ending.lived_s else self._failures + 1
        if ending.cause is Cause.REFUSED and (what_to_do := advice(ending.code)) is not None:
            raise SourceRefused(f"the broker {self._options.broker} refuses us: {ending.text}; {what_to_do}")
        if ending.cause is Cause.SENT_AWAY and ending.code == SESSION_TAKEN_OVER:
            raise SourceRefused(self._taken_over("has given our session to another client"))
        if ending.cause is Cause.SENT_AWAY and (what_to_do := advice(ending.code)) is not None:
            raise SourceRefused(
                f"the broker {self._options.broker} sends us away: {ending.text}; {what_to_do}"
            )
        if self._streak.add(ending):
            if ending.cause is Cause.CLOSED:
                raise SourceRefused(self._taken_over("keeps cutting us off, most likely for another client"))
            raise SourceError(
                f"source {self._source} cannot read what {self._options.broker} sends: {ending.text}"
            )
        if ending.cause is not Cause.UNREACHABLE:
            self._unreachable = False
            self._tell(NoticeKind.DISCONNECTED, self._counters.last_error, 1)
        elif not self._unreachable:
            self._unreachable = True  # said once, however often it is tried
            self._tell(NoticeKind.UNREACHABLE, f"{self._counters.last_error}; trying again", 1)

    def _taken_over(self, what: str) -> str:
        return (
            f"the broker {self._options.broker} {what} with the client id {self._options.client_id}: "
            "two clients use one id. Give one of them another client_id"
        )
