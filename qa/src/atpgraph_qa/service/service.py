"""The service as a whole: what is started, what runs in the background, what is stopped."""

from __future__ import annotations

import contextlib
import json
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import select

from atpgraph.errors import AtpError
from atpgraph_qa.advisor.people import Person
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.service.engine import BATCH, Engine, now_ms
from atpgraph_qa.service.forget import forget_rows
from atpgraph_qa.service.forget_history import asked_by, forget_in_history
from atpgraph_qa.service.out.guard import Resolve, resolve
from atpgraph_qa.service.out.payloads import Incoming, TopicPart
from atpgraph_qa.service.out.sender import Sender
from atpgraph_qa.service.retrain import Trainer
from atpgraph_qa.service.settings import Settings
from atpgraph_qa.service.snapshots import Snapshots
from atpgraph_qa.service.store import audit, tables, tokens
from atpgraph_qa.service.store.database import Database, DatabaseGoneError, NotInChargeError
from atpgraph_qa.service.store.events import Arrival, mark_seen, name_of
from atpgraph_qa.service.store.people import learn_handle, save_person
from atpgraph_qa.service.suggester import Suggester
from atpgraph_qa.timeline.events import Asked

LOG = logging.getLogger("atpgraph.serve")
DATABASE = "service.sqlite"
_GATHER_S = 0.2  # ten events applied together cost about as much as one


def database_url(settings: Settings) -> str:
    """Return the database of the settings, SQLite in the work folder by default."""
    return settings.store.database or f"sqlite:///{Path(settings.store.folder) / DATABASE}"


class Service:
    """Everything that runs in one process.

    Parameters
    ----------
    settings : Settings
    model : path, optional
        A trained model; needed at the first start.
    clock : callable
        The time in milliseconds.
    resolver : callable
        Addresses of a host and port, for what goes out.
    """

    def __init__(
        self,
        settings: Settings,
        model: Path | None = None,
        *,
        clock: Callable[[], int] = now_ms,
        resolver: Resolve = resolve,
    ) -> None:
        self.settings, self.clock = settings, clock
        self.folder = Path(settings.store.folder)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.database = Database(database_url(settings))
        self.first_token = ""
        self.ready = False
        self.model_path = model
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        try:
            self.database.migrate()
            self.database.take_charge()
            self._first_token()
            self.engine = Engine(self.database, settings, clock)
            self.suggester = Suggester(self.engine)
            self.snapshots = Snapshots(self.engine, self.folder)
            self.snapshots.open(model)
            self.engine.current().warm_up()  # ready means that the first route need not wait
            self.engine.start_readers()
            self.sender = Sender(self.database, settings, clock, resolver)
            self.sender.recover()
            self.trainer = Trainer(self.engine, self.snapshots, self.folder)
        except BaseException:
            self.database.close()
            raise
        self.ready = True

    def _first_token(self) -> None:
        with self.database.write() as connection:
            if not tokens.had_admin(connection):
                made = tokens.create_token(connection, "first", ["admin"], self.clock())
                self.first_token = made[1]

    # --- background ------------------------------------------------------------------------------

    def start(self) -> None:
        """Start the threads that apply events, deliver messages and do maintenance."""
        for name, work, pause in (
            ("apply", self._apply, 5.0),
            ("deliver", self.sender.run, 0.5),
            ("maintain", self.run_maintenance, 10.0),
        ):
            thread = threading.Thread(
                target=self._loop, args=(name, work, pause), name=f"atp-{name}", daemon=True
            )
            thread.start()
            self._threads.append(thread)

    def _apply(self) -> int:
        self.engine.new_events.clear()
        if self.engine.waiting < BATCH:
            self._stop.wait(_GATHER_S)
        return self.engine.apply()

    def _loop(self, name: str, work: Callable[[], int], pause: float) -> None:
        """Do some work again and again; rest only when there was none."""
        gone = False
        while not self._stop.is_set():
            try:
                done = work()
            except DatabaseGoneError:
                if not gone:
                    LOG.warning("database gone", extra={"facts": {"thread": name}})
                gone, done, pause_now = True, 0, 1.0
            except NotInChargeError:
                LOG.error("not in charge any more", extra={"facts": {"thread": name}})
                self.ready = False
                return
            except Exception as error:  # a bug must not end the service
                kind = type(error).__name__
                LOG.exception("bug", extra={"facts": {"thread": name, "kind": kind}})
                done, pause_now = 0, 5.0
            else:
                if gone:
                    LOG.warning("database back", extra={"facts": {"thread": name}})
                gone, pause_now = False, pause
            if not done:
                waiter = self.engine.new_events if name == "apply" else self._stop
                waiter.wait(pause_now)

    def apply_all(self) -> None:
        """Apply at once what the thread would apply: for tests, and before stopping."""
        while self.engine.apply():
            pass

    def run_maintenance(self) -> int:
        """Do what has to be done now and then."""
        self.release_waiting_topics()
        self.suggester.escalate()
        self.suggester.expire()
        self.engine.place_newcomers()
        self.engine.asks.week(self.clock())  # drops what is older
        old = tables.seen_hooks.c.at_ms < self.clock() - DAY_MS
        with self.database.write() as connection:
            connection.execute(tables.seen_hooks.delete().where(old, ~tables.seen_hooks.c.keep))
        self.engine.recalibrate()
        self.trainer.tend()
        if self.snapshots.due():
            self.snapshots.write()
        return 0

    def stop(self) -> None:
        """Finish what is under way, store it, and close the database."""
        self._stop.set()
        self.engine.new_events.set()
        for thread in self._threads:
            thread.join(timeout=30)
        self.engine.limiter.close()
        self.trainer.stop()
        if self.ready:
            with contextlib.suppress(AtpError):
                self.apply_all()
                if self.engine.seq > self.snapshots.written_seq:
                    self.snapshots.write()
        self.ready = False
        self.engine.close()
        self.database.close()

    # --- what comes in by hooks ------------------------------------------------------------------

    def receive(self, incoming: Incoming) -> dict[str, int]:
        """Store what a hook said; return how much of it was new."""
        learned: list[Person] = []
        with self.database.write() as connection:
            if incoming.once and not mark_seen(
                connection, incoming.once, self.clock(), keep=incoming.once_for_good
            ):
                return {"events": 0, "duplicates": 1, "forgotten": 0, "feedback": 0}
            for user, (handle, groups) in incoming.names.items():
                if user not in self.engine.forgotten_people:
                    changed = learn_handle(
                        connection, self.engine.directory, user, handle, groups, self.clock()
                    )
                    learned += [] if changed is None else [changed]
        for person in learned:
            self.engine.directory.put(person)
        whole = [arrival for part in incoming.topic_parts for arrival in self._joined(part)]
        numbers = self.engine.append([*incoming.events, *whole])
        removed = [self.forget(user, "the site") for user in incoming.forget]
        said = [
            self.suggester.feedback(v.suggestion, v.verdict, by=v.who) for v in incoming.verdicts
        ]
        return {
            "events": sum(number is not None for number in numbers),
            "duplicates": sum(number is None for number in numbers),
            "forgotten": len(removed),
            "feedback": sum(found is not None for found in said),
        }

    def _joined(self, part: TopicPart) -> list[Arrival]:
        """Return the question, if this is its second part; else keep the part for a while."""
        now, topic = self.clock(), tables.topic_parts.c.topic == part.question
        asker = -1 if part.asker in self.engine.forgotten_people else part.asker
        with self.database.write() as connection:
            row = connection.execute(select(tables.topic_parts).where(topic)).first()
            values = {"asker": asker, "origin": dict(part.origin), **part.values}
            if row is not None:
                first = json.loads(row.payload)
                if set(first) == set(values):
                    return []  # the same part again
                connection.execute(tables.topic_parts.delete().where(topic))
                return [_whole(part.question, row.at_ms, {**first, **values})]
            known = select(tables.events.c.seq)
            known = known.where(tables.events.c.name == f"asked:{part.question}")
            if connection.execute(known).first() is None:
                connection.execute(
                    tables.topic_parts.insert().values(
                        topic=part.question, at_ms=part.at_ms, received_ms=now,
                        payload=json.dumps(values),
                    )
                )  # fmt: skip
        return []

    def release_waiting_topics(self) -> None:
        """Take questions whose other part did not come as they are."""
        limit = self.clock() - round(1000 * self.settings.hooks.discourse_wait_seconds)
        query = select(tables.topic_parts).where(tables.topic_parts.c.received_ms < limit)
        with self.database.read() as connection:
            rows = connection.execute(query).all()
        if rows:
            self.engine.append([_whole(r.topic, r.at_ms, json.loads(r.payload)) for r in rows])
            with self.database.write() as connection:
                gone = tables.topic_parts.c.topic.in_([row.topic for row in rows])
                connection.execute(tables.topic_parts.delete().where(gone))

    # --- people ----------------------------------------------------------------------------------

    def save_person(self, person: Person, who: str = "") -> None:
        """Store what somebody set; `who` changed it, for the audit log."""
        with self.database.write() as connection:
            save_person(connection, person, self.clock())
            if who:
                audit.note(connection, self.clock(), who, "changed a person", person.id)
        self.engine.directory.put(person)

    def forget(self, user: int, who: str) -> dict[str, int]:
        """Forget a person everywhere; return what was removed."""
        engine = self.engine
        self.apply_all()
        with self.snapshots.writing, engine.lock:
            handle = engine.directory[user].handle
            asked = asked_by(engine.current(), user)
            with self.database.write(acting=True) as connection:
                report = forget_rows(
                    connection, engine.forgotten_people, user, handle, asked, self.clock()
                )
                audit.note(connection, self.clock(), who, "forgot a person")
            engine.directory.drop(user)
            engine.asks.drop(user)
            known = bool((engine.current().history.codes([user]) >= 0).any())
            engine.exchange(forget_in_history(engine.current(), user, handle))
            engine.place_newcomers()
            self.snapshots.write()
        self.database.erase_deleted()
        return {**report, "history": int(known), "snapshots": 1}


def _whole(question: int, at_ms: int, values: dict[str, Any]) -> Arrival:
    event = Asked(
        question, values.get("title", ""), values.get("body", ""), tuple(values.get("tags", ())),
        values["asker"], at_ms,
    )  # fmt: skip
    return Arrival(name_of(event), event, values.get("origin", {}))
