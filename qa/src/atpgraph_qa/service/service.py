"""The service: start, background work, stop."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sqlalchemy import select

from atpgraph.errors import AtpError
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.service import tables, tokens
from atpgraph_qa.service.adapters.base import Incoming
from atpgraph_qa.service.database import Database, DatabaseGoneError, NotInChargeError, serialize
from atpgraph_qa.service.engine import BATCH, Engine, now_ms
from atpgraph_qa.service.events import Arrival
from atpgraph_qa.service.forget import asked_by, forget_in_history, forget_rows
from atpgraph_qa.service.maintenance import Snapshots
from atpgraph_qa.service.outbox import Sender
from atpgraph_qa.service.schemas import HookOut
from atpgraph_qa.service.settings import Settings
from atpgraph_qa.service.suggester import Suggester
from atpgraph_qa.service.tables import Row
from atpgraph_qa.service.training import Trainer
from atpgraph_qa.timeline.events import Asked

LOG = logging.getLogger("atpgraph.serve")
_GATHER_S = 0.2  # ten events applied together take about as long as one


class Service:
    """All parts of the service that run in one process; the first start needs a model."""

    def __init__(
        self, settings: Settings, model: Path | None = None, *, clock: Callable[[], int] = now_ms
    ) -> None:
        self.settings, self.clock, self.model_path = settings, clock, model
        self.folder = Path(settings.store.folder)
        self.database = Database.of(settings)
        self.first_token = ""
        self.ready = False
        self._stop, self._threads = threading.Event(), list[threading.Thread]()
        try:
            self.database.migrate()
            self.database.take_charge()
            self._first_token()
            self.engine = Engine(self.database, settings, clock)
            self.suggester = Suggester(self.engine)
            self.snapshots = Snapshots(self.engine, self.folder)
            self.snapshots.open(model)
            self.engine.advisor.warm_up()  # so that the first route does not wait
            self.sender = Sender(self.database, settings, clock)
            self.sender.recover()
            self.trainer = Trainer(self.engine, self.snapshots)
        except BaseException:
            self.database.close()
            raise
        self.ready = True

    def _first_token(self) -> None:
        """Create an admin token unless one has ever existed."""
        with self.database.write() as connection:
            admin = tables.tokens.c.scopes.contains("admin")
            if tables.find_one(connection, tables.tokens, admin) is None:
                made = tokens.create_token(connection, "first", ["admin"], self.clock())
                self.first_token = made[1]

    def start(self) -> None:
        """Start the threads that apply events, deliver messages and do maintenance."""
        jobs: list[tuple[Any, ...]] = [
            ("apply", self._apply, 5.0, self.engine.new_events),
            ("deliver", self.sender.run, 0.5, self._stop),
            ("maintain", self.run_maintenance, 10.0, self._stop),
        ]
        for job in jobs:
            made = threading.Thread(None, self._loop, f"atp-{job[0]}", job, daemon=True)
            made.start()
            self._threads.append(made)

    def _apply(self) -> int:
        self.engine.new_events.clear()
        if self.engine.waiting < BATCH:
            self._stop.wait(_GATHER_S)
        return self.engine.apply()

    def _loop(
        self, name: str, work: Callable[[], int], pause: float, waiter: threading.Event
    ) -> None:
        """Repeat some work; pause only if there was nothing to do."""
        gone = False
        while not self._stop.is_set():
            wait, was_gone, facts = pause, gone, {"thread": name}
            try:
                gone, wait = False, 0.0 if work() else pause
            except DatabaseGoneError:
                gone, wait = True, 1.0
            except NotInChargeError:
                LOG.error("no longer in charge", extra={"facts": facts})
                self.ready = False
                return
            except Exception as error:  # a bug must not end the service
                facts["kind"] = type(error).__name__
                LOG.exception("bug", extra={"facts": facts})
                wait = 5.0
            if gone != was_gone:
                LOG.warning("database gone" if gone else "database back", extra={"facts": facts})
            if wait:
                waiter.wait(wait)

    def apply_all(self) -> None:
        """Apply all stored events now."""
        while self.engine.apply():
            pass

    def run_maintenance(self) -> int:
        """Do the periodic work; all jobs run, even if some fail."""
        engine, snapshots = self.engine, self.snapshots
        jobs: list[Callable[[], object]] = [
            engine.let_time_pass, self.release_waiting_topics, self.suggester.expire,
            self.suggester.escalate, engine.place_newcomers, self._drop_seen, engine.recalibrate,
            self.trainer.tend, lambda: snapshots.due() and snapshots.write(),
        ]  # fmt: skip
        with contextlib.ExitStack() as stack:  # it calls all, and then raises the last error
            for job in reversed(jobs):
                stack.callback(job)
        return 0

    def _drop_seen(self) -> None:
        t = tables.seen.c
        with self.database.write() as connection:
            tables.remove(connection, tables.seen, (t.at_ms < self.clock() - DAY_MS) & ~t.keep)

    def stop(self) -> None:
        """Finish running work, store the results, and close the database."""
        self._stop.set()
        self.engine.new_events.set()
        for thread in self._threads:
            thread.join(timeout=30)
        self.trainer.stop()
        if self.ready:
            with contextlib.suppress(AtpError):
                self.apply_all()
                if self.engine.seq > self.snapshots.written_seq:
                    self.snapshots.write(urgent=True)
        self.ready = False
        self.engine.close()
        self.database.close()

    def receive(self, incoming: Incoming) -> HookOut:
        """Store the content of a hook; return how much of it was new."""
        with self.database.read() as connection:
            if incoming.once and tables.find_one(connection, tables.seen, incoming.once):
                return HookOut(duplicates=1)
        self.engine.check_dates([*incoming.events, *incoming.topic_parts])
        for user, (handle, groups) in incoming.names.items():
            told = {"handle": handle} if groups is None else {"handle": handle, "groups": groups}
            self.engine.change_person(user, **told)
        whole = [arrival for part in incoming.topic_parts for arrival in self._joined(part)]
        numbers = self.engine.append([*incoming.events, *whole])
        for user in incoming.forget:
            self.forget(user, "the site")
        said = [self.suggester.feedback(*verdict) for verdict in incoming.verdicts]
        # Last, so that a hook that failed half way may be sent again.
        with self.database.write() as connection:
            tables.is_new(connection, incoming.once, self.clock(), incoming.once_for_good)
        return HookOut(
            events=sum(number is not None for number in numbers),
            duplicates=sum(number is None for number in numbers),
            forgotten=len(incoming.forget),
            feedback=sum(found is not None for found in said),
        )

    def _joined(self, part: Arrival) -> list[Arrival]:
        """Return the question, if this is its second part; else keep the part for a while."""
        parts, event = tables.topic_parts, self.engine.forgotten_people.cleaned(part.event)
        given = {name: value for name, value in asdict(event).items() if value not in ("", ())}
        topic, at_ms = given.pop("id"), given.pop("at_ms")
        given["origin"] = part.origin
        with self.database.write() as connection:
            serialize(connection)  # both parts may come at the same moment
            row = tables.find_one(connection, parts, topic)
            if row is not None and ("body" in row["payload"]) != ("body" in given):
                tables.remove(connection, parts, topic)
                return [_whole(row, given)]
            known = tables.find_one(connection, tables.events, tables.events.c.name == part.name)
            if known is None and row is None:
                tables.add(
                    connection, parts, topic=topic, payload=given, at_ms=at_ms,
                    received_ms=self.clock(),
                )  # fmt: skip
        return []

    def release_waiting_topics(self) -> None:
        """Store questions whose other part did not arrive in time."""
        limit = self.clock() - round(1000 * self.settings.hooks.discourse_wait_seconds)
        parts = tables.topic_parts
        with self.database.read() as connection:
            rows = tables.find(connection, select(parts).where(parts.c.received_ms < limit))
        if rows:
            self.engine.append([_whole(row, {}) for row in rows])
            with self.database.write() as connection:
                which = parts.c.topic.in_([row["topic"] for row in rows])
                tables.remove(connection, parts, which)

    def forget(self, user: int, who: str) -> dict[str, int]:
        """Forget a person everywhere; return what was removed."""
        engine = self.engine
        self.apply_all()
        with self.snapshots.writing, engine.lock:
            handle, advisor = engine.directory[user].handle, engine.advisor
            with self.database.write(acting=True) as connection:
                report = forget_rows(
                    connection, engine.forgotten_people, user, handle, asked_by(advisor, user),
                    self.clock(),
                )  # fmt: skip
                tables.note(connection, self.clock(), who, "forgot a person")
            engine.directory.drop(user)
            engine.asks.drop(user)
            known = engine.knows(user)
            engine.exchange(forget_in_history(advisor, user, handle))
            engine.place_newcomers()
            self.snapshots.write(urgent=True)  # events wait for it
        self.database.erase_deleted()
        return {**report, "history": int(known), "snapshots": 1}


def _whole(row: Row, other: Row) -> Arrival:
    """Return the question of a waiting topic, completed by its other part if that has arrived."""
    values = {**other, **row["payload"], "id": row["topic"], "at_ms": row["at_ms"]}
    origin = values.pop("origin", None)
    return Arrival.of(Asked(**values), origin=origin)
