"""The outbox: messages to other sites, and how they are sent.

A message is stored in the same transaction as the change that it reports. It is sent to a checked
address, with a deadline, and sent again after a failure.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
import secrets
import socket
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

import httpx2 as httpx
from sqlalchemy import Connection, select

from atpgraph.errors import AtpError, InputError
from atpgraph_qa.service import tables
from atpgraph_qa.service.adapters import ADAPTERS
from atpgraph_qa.service.adapters.base import Adapter
from atpgraph_qa.service.database import Database, DatabaseGoneError
from atpgraph_qa.service.settings import Settings
from atpgraph_qa.service.tables import Row, add, change, find, find_one, remove, save

MODERATORS = ("slack",)  # adapters that inform moderators; the others ask people
LOG = logging.getLogger("atpgraph.serve")
_GONE = 410
_AGAIN = (408, 409, 425, 429)  # client errors that may pass
# Translated to an IPv4 address that may be private (NAT64, 6to4, IPv4-compatible), or site-local.
_NOT_PUBLIC = tuple(
    map(ipaddress.ip_network, ("64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "::/96", "fec0::/10"))
)

_messages, _off, _made = tables.outbox, tables.switched_off, tables.suggestions
# Seconds to the next attempt: from five seconds to half a day, over three days in all.
BACKOFF = (5, 60, 300, 1800, 7200, 18_000, 36_000, 43_200, 43_200, 43_200, 43_200)


@dataclass(frozen=True)
class Outcome:
    """The result of an attempt: the status, or the error if it failed."""

    status: int | None
    error: str = ""
    again: bool = False
    took_ms: int = 0


def enqueue(
    connection: Connection, suggestion: int, adapter: str, payload: Row, now_ms: int
) -> None:
    """Add a message to the outbox."""
    add(
        connection, _messages, id=f"msg_{secrets.token_hex(16)}", suggestion=suggestion,
        adapter=adapter, payload=payload, state="waiting", attempts=0, next_ms=now_ms,
        created_ms=now_ms,
    )  # fmt: skip


def settle(connection: Connection, message: Row, outcome: Outcome, now_ms: int) -> str:
    """Record an attempt; return the new state: sent, waiting (to be sent again) or dead."""
    number, before = message["id"], message["attempts"]
    state, next_ms = "dead" if outcome.error else "sent", now_ms
    if outcome.again and before < len(BACKOFF):
        state, next_ms = "waiting", now_ms + 1000 * BACKOFF[before]
    add(
        connection, tables.deliveries, message=number, at_ms=now_ms, status=outcome.status,
        error=outcome.error, took_ms=outcome.took_ms,
    )  # fmt: skip
    which = _messages.c.id == number
    if state == "waiting":  # unless it was cancelled meanwhile
        which &= _messages.c.state == "sending"
    change(connection, _messages, which, state=state, next_ms=next_ms)
    if state == "sent":
        which = (_made.c.id == message["suggestion"]) & (_made.c.state == "proposed")
        which &= _made.c.sent_ms.is_not(None)  # else the message went to moderators
        change(connection, _made, which, state="delivered", changed_ms=now_ms)
    if outcome.status == _GONE:  # for good
        why = "The receiver is gone."
        save(connection, _off, adapter=message["adapter"], since_ms=now_ms, why=why)
    return state


def cancel(connection: Connection, question: int) -> None:
    """Cancel the messages about a question; one under way is not sent again."""
    about = select(_made.c.id).where(_made.c.question == question)
    which = _messages.c.suggestion.in_(about) & _messages.c.state.in_(("waiting", "sending"))
    change(connection, _messages, which, state="cancelled")


def _to_send(connection: Connection, messages: list[Row]) -> list[Row]:
    """Leave out people who opted out since; cancel the messages that would ask nobody else."""
    named = [message["payload"].get("data", {}).get("people", []) for message in messages]
    t, users = tables.people.c, {person["user"] for people in named for person in people}
    out = set(connection.execute(select(t.id).where(t.id.in_(users), t.opted_out)).scalars())
    kept = []
    for message, people in zip(messages, named, strict=True):
        left = [person for person in people if person["user"] not in out]
        if message["adapter"] in MODERATORS or len(left) == len(people):
            kept.append(message)
        elif left:
            message["payload"]["data"]["people"] = left
            kept.append(message)
        else:
            change(connection, _messages, message["id"], state="cancelled")
    return kept


def redeliver(connection: Connection, message: str, now_ms: int) -> bool:
    """Send a message again that is dead, uncertain, cancelled or sent; False if there is none."""
    which = (_messages.c.id == message) & _messages.c.state.not_in(("waiting", "sending"))
    row = find_one(connection, _messages, which)
    if row is not None:
        change(connection, _messages, which, state="waiting", next_ms=now_ms, attempts=0)
        remove(connection, _off, _off.c.adapter == row["adapter"])
    return row is not None


def list_messages(connection: Connection) -> list[Row]:
    """Return the newest messages with their last attempt, without their content."""
    wanted = [column for column in _messages.c if column.name != "payload"]
    found = find(connection, select(*wanted).order_by(_messages.c.created_ms.desc()).limit(100))
    t = tables.deliveries.c
    for entry in found:
        tries = select(t.status, t.error, t.at_ms).where(t.message == entry["id"])
        entry["last"] = next(iter(find(connection, tries.order_by(t.id.desc()).limit(1))), None)
    return found


def resolve(host: str, port: int) -> list[str]:
    """Return all addresses of a host."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


def is_public(address: str) -> bool:
    """Return whether anybody on the internet can reach an address."""
    parsed = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return is_public(str(parsed.ipv4_mapped))
        if any(parsed in network for network in _NOT_PUBLIC):
            return False
    return parsed.is_global and not parsed.is_multicast


def checked_address(
    url: str | httpx.URL, resolver: Callable[[str, int], list[str]], allowed: Collection[str] = ()
) -> tuple[str, str, int]:
    """Return address, host and port of a URL, or raise an error if it is private.

    The caller connects to the checked address, because the name may resolve to another one a moment
    later: a webhook must not reach addresses that only this machine can reach.
    """
    parsed, addresses = httpx.URL(), list[str]()
    with contextlib.suppress(httpx.InvalidURL):
        parsed = httpx.URL(url)
    host, port = parsed.host, parsed.port or (443 if parsed.scheme == "https" else 80)
    if parsed.scheme not in ("http", "https") or not host:
        raise InputError("The address must begin with http:// or https://.")
    with contextlib.suppress(OSError, ValueError):
        addresses = resolver(host, port)
    if not addresses:
        raise InputError("The host does not resolve.")
    if host not in allowed and not all(is_public(address) for address in addresses):
        raise InputError("The host has a private address; allow it with deliver.allow_private.")
    return addresses[0], host, port


class Sender:
    """Sends the messages in the outbox."""

    def __init__(self, database: Database, settings: Settings, clock: Callable[[], int]) -> None:
        self.database, self.settings, self.clock = database, settings, clock
        self.resolver = resolve  # returns the addresses of a host and port
        self.adapters: dict[str, Adapter] = {
            name: ADAPTERS[name](settings) for name in settings.deliver.adapters
        }
        self._answered: list[tuple[Row, Outcome]] = []

    def recover(self) -> None:
        """Decide about messages that were being sent during a crash and may have arrived.

        A message is sent again if its receiver recognizes repeats by the id. If not, it could
        appear twice, so it is left as ``uncertain`` for a person to decide. The attempt does not
        count, so that crashes do not lengthen the pauses.
        """
        safe = {name for name, adapter in self.adapters.items() if adapter.repeatable}
        sending, repeatable = _messages.c.state == "sending", _messages.c.adapter.in_(safe)
        values = {"next_ms": self.clock(), "attempts": _messages.c.attempts - 1}
        with self.database.write(acting=True) as connection:
            again = change(connection, _messages, sending & repeatable, state="waiting", **values)
            unsure = change(connection, _messages, sending, state="uncertain", **values)
        if again or unsure:
            LOG.warning("recovered", extra={"facts": {"again": again, "uncertain": unsure}})

    def run(self, limit: int = 20) -> int:
        """Send the messages that are due, several at once; return the number of attempts."""
        self._settle()  # what could not be recorded while the database was gone
        t = _messages.c
        due = (t.state == "waiting") & (t.next_ms <= self.clock())
        query = select(t.id, t.suggestion, t.adapter, t.payload, t.attempts).where(
            due, t.adapter.not_in(select(_off.c.adapter))
        )
        query = query.order_by(t.next_ms).limit(limit).with_for_update(skip_locked=True)
        with self.database.write(acting=True) as connection:
            messages = _to_send(connection, find(connection, query))
            which = t.id.in_([message["id"] for message in messages])
            change(connection, _messages, which, state="sending", attempts=t.attempts + 1)
        if messages:
            asyncio.run(self._send_all(messages))
        return len(messages)

    async def _send_all(self, messages: list[Row]) -> None:
        """Send messages, and record each answer as soon as it comes.

        A message goes out twice only if the process ends between the two, so all answers that
        arrived during one transaction share the next.
        """
        under_way = {asyncio.create_task(self._attempt(message)) for message in messages}
        while under_way:
            done, under_way = await asyncio.wait(under_way, return_when=asyncio.FIRST_COMPLETED)
            self._answered += [task.result() for task in done]
            with contextlib.suppress(DatabaseGoneError):
                await asyncio.to_thread(self._settle)

    def _settle(self) -> None:
        """Record the outcome of messages; they are kept for later if the database is gone."""
        settled = list(self._answered)
        if not settled:
            return
        with self.database.write(acting=True) as connection:
            now = self.clock()
            states = [settle(connection, message, outcome, now) for message, outcome in settled]
        del self._answered[: len(settled)]
        for state, (message, outcome) in zip(states, settled, strict=True):
            facts = {"message": message["id"], "adapter": message["adapter"], "state": state,
                     "status": outcome.status, "ms": outcome.took_ms}  # fmt: skip
            LOG.info("delivery", extra={"facts": facts})

    async def _attempt(self, message: Row) -> tuple[Row, Outcome]:
        """Send a message once."""
        started, status, error = time.monotonic(), None, ""
        again = repeatable = False
        try:
            if message["adapter"] not in self.adapters:
                raise InputError("The adapter is not enabled.")
            adapter = self.adapters[message["adapter"]]
            repeatable = adapter.repeatable
            request = adapter.deliver(message["id"], message["payload"], self.clock())
            async with asyncio.timeout(self.settings.deliver.timeout_seconds):
                status = await self._send(request)
        except TimeoutError:
            # It may have arrived, so send it again only if the receiver recognizes that.
            error, again = "No answer in time.", repeatable
        except httpx.ConnectError:
            error, again = "No connection.", True
        except httpx.HTTPError as broken:
            error, again = f"The connection broke ({type(broken).__name__}).", repeatable
        except (AtpError, httpx.InvalidURL, KeyError, TypeError, ValueError) as wrong:
            error = str(wrong) or type(wrong).__name__
        except Exception as bug:  # must not leave the rest of its batch unsettled
            LOG.exception("bug", extra={"facts": {"kind": type(bug).__name__}})
            error = f"A bug ({type(bug).__name__})."
        else:
            if 300 <= status < 400:
                error = "Redirects are not followed."
            elif status >= 400:
                error = f"The receiver answered {status}."
                again = status >= 500 or status in _AGAIN
        took_ms = round(1000 * (time.monotonic() - started))
        return message, Outcome(status, error, again, took_ms)

    async def _send(self, request: httpx.Request) -> int:
        """Send a request to its checked address; the certificate must still match the name."""
        allowed = self.settings.deliver.allow_private
        address, host, port = await asyncio.to_thread(
            checked_address, request.url, self.resolver, allowed
        )
        request.url = request.url.copy_with(host=address, port=port)  # the header keeps the name
        request.extensions["sni_hostname"] = host
        async with httpx.AsyncClient(trust_env=False, timeout=None) as client:
            answer = await client.send(request, stream=True)  # its body does not matter
            await answer.aclose()
            return answer.status_code
