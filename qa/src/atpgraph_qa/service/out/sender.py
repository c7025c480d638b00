"""Brings messages out: to checked addresses, with deadlines, again if it failed."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit, urlunsplit

import httpx2 as httpx

from atpgraph.errors import AtpError
from atpgraph_qa.service.out import guard
from atpgraph_qa.service.out.adapters import ADAPTERS
from atpgraph_qa.service.out.payloads import Adapter, Call
from atpgraph_qa.service.settings import Settings
from atpgraph_qa.service.store import outbox
from atpgraph_qa.service.store.database import Database, DatabaseGoneError
from atpgraph_qa.service.store.outbox import Message

LOG = logging.getLogger("atpgraph.serve")
_GONE = 410
_AGAIN = (408, 409, 425, 429)  # client errors that may pass


@dataclass(frozen=True)
class Outcome:
    """What became of an attempt: status if there was one, error if it failed."""

    status: int | None
    error: str
    again: bool


class Sender:
    """Sends what is in the outbox.

    Parameters
    ----------
    database : Database
    settings : Settings
    clock : callable
        The time in milliseconds.
    resolver : callable
        Addresses of a host and port.
    """

    def __init__(
        self,
        database: Database,
        settings: Settings,
        clock: Callable[[], int],
        resolver: guard.Resolve = guard.resolve,
    ) -> None:
        self.database, self.settings, self.clock = database, settings, clock
        self.resolver = resolver
        self.adapters: dict[str, Adapter] = {
            name: ADAPTERS[name](settings) for name in settings.deliver.adapters
        }
        self._answered: list[tuple[Message, Outcome, int]] = []

    def recover(self) -> None:
        """Decide about messages that were on their way when the process ended."""
        safe = {name for name, adapter in self.adapters.items() if adapter.repeatable}
        with self.database.write(acting=True) as connection:
            again, unsure = outbox.recover(connection, safe, self.clock())
        if again or unsure:
            LOG.warning("recovered", extra={"facts": {"again": again, "uncertain": unsure}})

    def run(self, limit: int = 20) -> int:
        """Send what is due, several at once; how many attempts."""
        self._settle()  # what could not be written down while the database was gone
        with self.database.write(acting=True) as connection:
            messages = outbox.claim(self.database, connection, self.clock(), limit)
        if messages:
            asyncio.run(self._send_all(messages))
        return len(messages)

    async def _send_all(self, messages: list[Message]) -> None:
        """Send, and write down each answer as soon as it is there.

        A message goes out twice only if the process ends between the two, so all answers that came
        during one transaction share the next.
        """
        under_way = {asyncio.create_task(self._timed(message)) for message in messages}
        while under_way:
            done, under_way = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
            self._answered += [task.result() for task in done]
            with contextlib.suppress(DatabaseGoneError):
                await asyncio.to_thread(self._settle)

    async def _timed(self, message: Message) -> tuple[Message, Outcome, int]:
        started = time.monotonic()
        try:
            outcome = await self._attempt(message)
        except Exception as error:  # a bug must not leave the others of its batch in between
            LOG.exception("bug", extra={"facts": {"kind": type(error).__name__}})
            outcome = Outcome(None, f"A bug ({type(error).__name__}).", again=False)
        return message, outcome, round(1000 * (time.monotonic() - started))

    def _settle(self) -> None:
        """Write down what became of messages; kept for later if the database does not answer."""
        settled = list(self._answered)
        if not settled:
            return
        states = []
        with self.database.write(acting=True) as connection:
            now = self.clock()
            for message, outcome, took in settled:
                state = outbox.settle(
                    connection, message, status=outcome.status, error=outcome.error,
                    took_ms=took, now_ms=now, again=outcome.again,
                )  # fmt: skip
                states.append(state)
                if outcome.status == _GONE:
                    outbox.switch_off(connection, message.adapter, "The receiver is gone.", now)
        del self._answered[: len(settled)]
        for state, (message, outcome, took) in zip(states, settled, strict=True):
            facts = {"message": message.id, "adapter": message.adapter, "state": state,
                     "status": outcome.status, "ms": took}  # fmt: skip
            LOG.info("delivery", extra={"facts": facts})

    async def _attempt(self, message: Message) -> Outcome:
        adapter = self.adapters.get(message.adapter)
        if adapter is None:
            return Outcome(None, "The adapter is not switched on.", again=False)
        try:
            call = adapter.deliver(message, self.clock())
            async with asyncio.timeout(self.settings.deliver.timeout_seconds):
                status = await self._send(call)
        except TimeoutError:
            # It may have arrived: only a receiver that knows repetitions gets it again.
            return Outcome(None, "No answer in time.", again=adapter.repeatable)
        except httpx.ConnectError:
            return Outcome(None, "No connection.", again=True)
        except httpx.HTTPError as error:
            said = f"The connection broke ({type(error).__name__})."
            return Outcome(None, said, again=adapter.repeatable)
        except (AtpError, KeyError, TypeError, ValueError) as error:
            return Outcome(None, str(error) or type(error).__name__, again=False)
        if 200 <= status < 300:
            return Outcome(status, "", again=False)
        if 300 <= status < 400:
            return Outcome(status, "Redirects are not followed.", again=False)
        again = status >= 500 or status in _AGAIN
        return Outcome(status, f"The receiver answered {status}.", again)

    async def _send(self, call: Call) -> int:
        allowed = self.settings.deliver.allow_private
        address, host, port = await asyncio.to_thread(
            guard.checked_address, call.url, allowed, self.resolver
        )
        parts = urlsplit(call.url)
        literal = f"[{address}]" if ":" in address else address
        url = urlunsplit((parts.scheme, f"{literal}:{port}", parts.path, parts.query, ""))
        headers = {**call.headers, "host": parts.netloc.rpartition("@")[2]}
        # To the address that was checked; the name still has to fit the certificate.
        async with (
            httpx.AsyncClient(trust_env=False, follow_redirects=False, timeout=None) as client,
            client.stream(
                call.method, url, headers=headers, content=call.body,
                extensions={"sni_hostname": host},
            ) as response,
        ):  # fmt: skip
            return response.status_code  # what the receiver says besides is nothing to us
