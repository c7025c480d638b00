"""Snapshots of the advisor; backup, restore and repair of a store.

A restart loads the last snapshot and applies the events since. An advisor is immutable, so it is
written while routing continues. A backup holds all rows as JSON lines and the last snapshot, in one
file. Its format does not depend on the database, so restoring also moves a service from SQLite to
PostgreSQL.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import logging
import os
import re
import shutil
import threading
import zipfile
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

from sqlalchemy import Connection, Table, func, insert, select, text
from sqlalchemy.exc import CompileError, OperationalError, StatementError

from atpgraph.errors import AtpError, InputError
from atpgraph.util.files import atomic_path
from atpgraph_qa.advisor.advisor import Advisor
from atpgraph_qa.advisor.readers import yield_to_others
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.service import outbox, tables
from atpgraph_qa.service.database import Database, make_private, migrations
from atpgraph_qa.service.engine import MANY_RECENT, Engine
from atpgraph_qa.service.forget import forget_in_history
from atpgraph_qa.service.settings import Settings
from atpgraph_qa.service.suggestions import end_suggestions
from atpgraph_qa.service.tables import METADATA, get_meta, put_meta

LOG = logging.getLogger("atpgraph.serve")


class Snapshots:
    """The snapshots of a work folder.

    `writing` is held while a snapshot is written. To remove something from the last snapshot, for
    example a person, take it before ``engine.lock``, so that no older snapshot is written
    afterwards.
    """

    def __init__(self, engine: Engine, folder: Path) -> None:
        self.engine = engine
        self.folder = folder / "snapshots"
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        make_private(self.folder)
        self.writing = threading.RLock()
        self.written_seq = 0
        self.written_ms = engine.clock()

    def open(self, model: Path | None) -> None:
        """Give the engine its advisor: from the snapshot, or from a model not used before."""
        engine, given = self.engine, ""
        with engine.database.read() as connection:
            kept = json.loads(get_meta(connection, "snapshot", "{}"))
            known = get_meta(connection, "base_model")
        if model is not None:
            try:
                given = hashlib.sha256((model / "model.json").read_bytes()).hexdigest()
            except OSError:
                raise InputError(
                    f"{model} is not a trained model; make one with 'atp qa train SITE -o MODEL'."
                ) from None
        is_new = given not in ("", known)
        if kept and not is_new and (self.folder / kept["name"]).is_dir():
            advisor = Advisor.load(self.folder / kept["name"])
            name, self.written_seq = kept["model"], int(kept["seq"])
        elif model is not None:
            advisor, name = Advisor.load(model), given[:12]
        else:
            raise InputError("There is no snapshot yet: name a model that 'atp qa train' made.")
        users = advisor.history.users.tolist()
        gone = [user for user in users if user in engine.forgotten_people]
        for user in gone:
            advisor = forget_in_history(advisor, user)
        engine.start_from(advisor, name, self.written_seq)
        if is_new:
            with engine.database.write(acting=True) as connection:
                put_meta(connection, "base_model", given)
        if gone or is_new:
            self.write()

    def due(self) -> bool:
        """Return whether enough happened since the last one."""
        new, store = self.engine.seq - self.written_seq, self.engine.settings.store
        passed = self.engine.clock() - self.written_ms > 60_000 * store.snapshot_minutes
        return new >= store.snapshot_events or (new > 0 and passed)

    def write(self, *, urgent: bool = False) -> Path:
        """Write the current advisor, then remove older snapshots.

        The file is written at low priority, so that routes do not have to wait, unless `urgent`.
        """
        with self.writing:
            with self.engine.lock:
                advisor, model, seq = self.engine.advisor, self.engine.model, self.engine.seq
            name = f"{seq:012d}-{self.engine.clock()}"
            path = self.folder / name
            priority = None if urgent else yield_to_others
            with ThreadPoolExecutor(1, initializer=priority) as background:
                background.submit(advisor.save, path).result()
            make_private(path)
            with self.engine.database.write(acting=True) as connection:
                kept = {"name": name, "seq": seq, "model": model}
                put_meta(connection, "snapshot", json.dumps(kept))
            for other in self.folder.iterdir():
                if other.name != name:
                    shutil.rmtree(other, ignore_errors=True)
            self.written_seq, self.written_ms = seq, self.engine.clock()
            if advisor.history.records.n_recent >= MANY_RECENT:
                self.engine.go_on_from(advisor.merged(), seq)
        LOG.info("snapshot", extra={"facts": {"seq": seq}})
        return path


FORMAT = "atpgraph-serve-backup"
_FILE = re.compile(r"[a-z][a-z0-9_-]*\.(json|npz)")  # the files of a snapshot
_SNAPSHOT = re.compile(r"[0-9]+-[0-9]+")
_LEFT_OUT = ("sessions",)  # of no use elsewhere
_ROWS = 500
_ATTEMPTS = 5
# The errors of zipfile, json and the database on a damaged backup.
_DAMAGE = (
    ValueError, KeyError, TypeError, AttributeError, OverflowError, RuntimeError, EOFError,
    NotImplementedError, zipfile.BadZipFile, zlib.error, StatementError, CompileError,
)  # fmt: skip


class _SnapshotGoneError(Exception):
    """The service has replaced the snapshot meanwhile."""


def backup(settings: Settings, file: str | os.PathLike[str]) -> dict[str, int]:
    """Write a backup while the service may run; return how many rows of each table are in it."""
    for _ in range(_ATTEMPTS):
        with contextlib.suppress(_SnapshotGoneError):
            return _backup(settings, file)
    raise InputError("The snapshot that the database names is not in the work folder.")


def _backup(settings: Settings, file: str | os.PathLike[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    with contextlib.closing(Database.of(settings)) as database:
        database.migrate()
        with (
            atomic_path(file) as temporary,
            zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False) as made,
            database.read() as connection,
        ):
            if not database.is_sqlite:
                connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
            for table in METADATA.sorted_tables:
                if table.name not in _LEFT_OUT:
                    counts[table.name] = 0
                    with made.open(f"tables/{table.name}.jsonl", "w") as lines:
                        for row in connection.execute(select(table)):
                            lines.write(json.dumps(dict(row._mapping)).encode() + b"\n")
                            counts[table.name] += 1
            kept = json.loads(get_meta(connection, "snapshot", "{}"))
            if kept:
                folder = Path(settings.store.folder) / "snapshots" / kept["name"]
                try:
                    for path in sorted(folder.iterdir()):
                        made.write(path, f"snapshot/{path.name}")
                except FileNotFoundError:
                    raise _SnapshotGoneError from None
            head = {"format": FORMAT, "version": migrations()[-1][0], "rows": counts}
            made.writestr("backup.json", json.dumps(head))
    make_private(Path(file))
    return counts


def restore(settings: Settings, file: str | os.PathLike[str]) -> dict[str, int]:
    """Restore a backup to an empty database and the work folder; return how many rows by table."""
    try:
        archive = zipfile.ZipFile(file)
        head = dict(json.loads(archive.read("backup.json")))
    except (OSError, *_DAMAGE):
        raise InputError(f"{file} is not a backup that 'atp server backup' wrote.") from None
    version, known = head.get("version"), [number for number, _ in migrations()]
    if head.get("format") != FORMAT or version not in known:
        raise InputError(f"{file} is a backup of another version of atpgraph.")
    counts, names = dict[str, int](), archive.namelist()
    with archive, contextlib.closing(Database.of(settings)) as database:
        try:
            with database.write() as connection:
                database.migrate_to(connection, version)
                present = [t for t in METADATA.sorted_tables if f"tables/{t.name}.jsonl" in names]
                for table in present:
                    if connection.execute(select(func.count()).select_from(table)).scalar_one():
                        raise InputError("The database is not empty: restore into a new one.")
                for table in present:
                    with archive.open(f"tables/{table.name}.jsonl") as lines:
                        counts[table.name] = _insert(connection, table, lines)
                told = {t: n for t, n in head.get("rows", {}).items() if t in METADATA.tables}
                if any(counts.get(name, 0) != rows for name, rows in told.items()):
                    raise ValueError("rows are missing")
                database.migrate_to(connection, known[-1])
                if not database.is_sqlite:
                    _number_on(connection)
                kept = json.loads(get_meta(connection, "snapshot", "{}"))
                if kept:
                    _unpack_snapshot(archive, Path(settings.store.folder), str(kept["name"]))
        except (AtpError, OperationalError):
            raise
        except _DAMAGE as error:
            raise InputError(f"The backup {file} is damaged; nothing was restored.") from error
    return counts


def _insert(connection: Connection, table: Table, lines: IO[bytes]) -> int:
    """Insert rows; an older version may have had more columns. Return how many."""
    count, known = 0, set(table.c.keys())
    while rows := [*map(json.loads, itertools.islice(lines, _ROWS))]:
        kept = [{name: row[name] for name in known & row.keys()} for row in rows]
        connection.execute(insert(table), kept)
        count += len(rows)
    return count


def _unpack_snapshot(archive: zipfile.ZipFile, folder: Path, name: str) -> None:
    if not _SNAPSHOT.fullmatch(name):  # for example "..", which would write elsewhere
        raise InputError(
            "The backup is damaged: the name of its snapshot is not a plain file name."
        )
    target = folder / "snapshots" / name
    target.mkdir(parents=True, exist_ok=True)
    for member in archive.namelist():
        part = member.removeprefix("snapshot/")
        if part != member and _FILE.fullmatch(part):  # plain names stay in the folder
            with atomic_path(target / part) as temporary:
                temporary.write_bytes(archive.read(member))
    make_private(folder / "snapshots")


def _number_on(connection: Connection) -> None:
    """Let PostgreSQL number new rows after the restored ones."""
    for table in METADATA.sorted_tables:
        key = next(iter(table.primary_key)).name
        found = connection.execute(
            text("SELECT pg_get_serial_sequence(:t, :c)"), {"t": table.name, "c": key}
        ).scalar()
        if found:
            most = f"SELECT COALESCE(MAX({key}), 0) + 1 FROM {table.name}"
            connection.execute(text(f"SELECT setval('{found}', ({most}), false)"))


def repair(settings: Settings, now_ms: int) -> dict[str, int]:
    """Disable events dated more than a day after they arrived; return how much was changed.

    The service must be stopped. The next start rebuilds the history from the model and the other
    events, so it needs the model; weights that were learned since are lost.
    """
    t = tables.events.c
    with contextlib.closing(Database.of(settings)) as database:
        database.migrate()
        database.take_charge()
        with database.write(acting=True) as connection:
            ahead = (t.at_ms > t.received_ms + DAY_MS) & t.refused.is_(None)
            rows = connection.execute(select(t.kind, t.question, t.answer).where(ahead)).all()
            why = "dated more than a day after it arrived"
            tables.change(connection, tables.events, ahead, refused=why)
            asked = [row.question for row in rows if row.kind == "asked"]
            given = [row.answer for row in rows if row.kind == "answered"]
            tables.remove(connection, tables.questions, tables.questions.c.id.in_(asked))
            tables.remove(connection, tables.answers, tables.answers.c.id.in_(given))
            about = tables.suggestions.c.question.in_(asked)
            ended = end_suggestions(connection, about, "expired", now_ms)
            for question in asked:
                outbox.cancel(connection, question)
            if rows:
                put_meta(connection, "snapshot", "{}")
                put_meta(connection, "base_model", "")
    return {"events": len(rows), "questions": len(asked), "suggestions": ended}
