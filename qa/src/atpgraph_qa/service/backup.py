"""Backup and restore: all rows as JSON lines and the last snapshot, in one file.

The form does not depend on the kind of database, so that a restore is also the way from SQLite to
PostgreSQL.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from sqlalchemy import Connection, func, insert, select, text
from sqlalchemy.exc import CompileError, OperationalError, StatementError

from atpgraph.errors import AtpError, InputError
from atpgraph.util.files import atomic_path
from atpgraph_qa.service.service import database_url
from atpgraph_qa.service.settings import Settings
from atpgraph_qa.service.store.database import Database, get_meta, make_private
from atpgraph_qa.service.store.tables import METADATA, migrations

FORMAT = "atpgraph-serve-backup"
_FILE = re.compile(r"[a-z][a-z0-9_-]*\.(json|npz)")  # what a snapshot may hold
_SNAPSHOT = re.compile(r"[0-9]+-[0-9]+")
_LEFT_OUT = ("sessions", "idempotency")  # of no use elsewhere
_ROWS = 500
_ATTEMPTS = 5
# What a damaged backup makes of zipfile, json and the database.
_DAMAGE = (
    ValueError, KeyError, TypeError, AttributeError, OverflowError, RuntimeError, EOFError,
    NotImplementedError, zipfile.BadZipFile, zlib.error, StatementError, CompileError,
)  # fmt: skip


def backup(settings: Settings, file: str | os.PathLike[str]) -> dict[str, int]:
    """Write a backup while the service may run; how many rows of each table are in it."""
    for _ in range(_ATTEMPTS):
        with contextlib.suppress(SnapshotGoneError):
            return _backup(settings, file)
    raise InputError("The snapshot that the database names is not in the work folder.")


class SnapshotGoneError(Exception):
    """The service has written another snapshot meanwhile."""


def _backup(settings: Settings, file: str | os.PathLike[str]) -> dict[str, int]:
    database = Database(database_url(settings))
    counts: dict[str, int] = {}
    try:
        database.migrate()
        with atomic_path(file) as temporary, zipfile.ZipFile(
            temporary, "w", zipfile.ZIP_DEFLATED, strict_timestamps=False
        ) as archive, database.read() as connection:  # fmt: skip
            if not database.is_sqlite:
                connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
            for table in METADATA.sorted_tables:
                if table.name in _LEFT_OUT:
                    continue
                with archive.open(f"tables/{table.name}.jsonl", "w") as raw:
                    counts[table.name] = 0
                    for row in connection.execute(select(table)):
                        raw.write(json.dumps(dict(row._mapping)).encode() + b"\n")
                        counts[table.name] += 1
            _pack_snapshot(connection, settings, archive)
            head = {"format": FORMAT, "version": migrations()[-1][0], "rows": counts}
            archive.writestr("backup.json", json.dumps(head))
    finally:
        database.close()
    make_private(Path(file))
    return counts


def _pack_snapshot(connection: Connection, settings: Settings, archive: zipfile.ZipFile) -> None:
    kept = json.loads(get_meta(connection, "snapshot", "{}"))
    if not kept:
        return
    folder = Path(settings.store.folder) / "snapshots" / kept["name"]
    try:
        for path in sorted(folder.iterdir()):
            archive.write(path, f"snapshot/{path.name}")
    except FileNotFoundError:
        raise SnapshotGoneError from None


def restore(settings: Settings, file: str | os.PathLike[str]) -> dict[str, int]:
    """Fill an empty database and the work folder from a backup; how many rows of each table."""
    folder = Path(settings.store.folder)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        archive = zipfile.ZipFile(file)
        head = json.loads(archive.read("backup.json"))
    except (OSError, *_DAMAGE):
        raise InputError(f"{file} is not a backup that 'atp server backup' wrote.") from None
    known = [version for version, _ in migrations()]
    if (
        not isinstance(head, dict)
        or head.get("format") != FORMAT
        or head.get("version") not in known
    ):
        raise InputError(f"{file} is a backup of another version of atpgraph.")
    database = Database(database_url(settings))
    counts: dict[str, int] = {}
    try:
        database.migrate()
        with archive, database.write() as connection:
            for table in METADATA.sorted_tables:
                if connection.execute(select(func.count()).select_from(table)).scalar_one():
                    raise InputError("The database is not empty: restore into a new one.")
            for table in METADATA.sorted_tables:
                name = f"tables/{table.name}.jsonl"
                if name not in archive.namelist():
                    continue
                with archive.open(name) as raw:
                    for rows in _batches(raw):
                        connection.execute(insert(table), rows)
                        counts[table.name] = counts.get(table.name, 0) + len(rows)
            if not database.is_sqlite:
                _count_on(connection)
            kept = json.loads(get_meta(connection, "snapshot", "{}"))
            if kept:
                _unpack_snapshot(archive, folder, str(kept["name"]))
    except (AtpError, OperationalError):
        raise
    except _DAMAGE as error:
        raise InputError(f"The backup {file} is damaged; nothing was restored.") from error
    finally:
        database.close()
    return counts


def _batches(raw: IO[bytes]) -> Iterator[list[dict[str, object]]]:
    rows = []
    for line in raw:
        rows.append(json.loads(line))
        if len(rows) == _ROWS:
            yield rows
            rows = []
    if rows:
        yield rows


def _unpack_snapshot(archive: zipfile.ZipFile, folder: Path, name: str) -> None:
    if not _SNAPSHOT.fullmatch(name):  # not "..": nothing is written elsewhere
        raise InputError("The backup is damaged: its snapshot has no plain name.")
    target = folder / "snapshots" / name
    target.mkdir(parents=True, exist_ok=True)
    for member in archive.namelist():
        part = member.removeprefix("snapshot/")
        if part != member and _FILE.fullmatch(part):  # plain names: nothing is written elsewhere
            with atomic_path(target / part) as temporary:
                temporary.write_bytes(archive.read(member))
    make_private(folder / "snapshots")


def _count_on(connection: Connection) -> None:
    """PostgreSQL numbers new rows after those that were restored."""
    for table in METADATA.sorted_tables:
        key = next(iter(table.primary_key.columns)).name
        found = connection.execute(
            text("SELECT pg_get_serial_sequence(:t, :c)"), {"t": table.name, "c": key}
        ).scalar()
        if found:
            most = f"SELECT COALESCE(MAX({key}), 0) + 1 FROM {table.name}"
            connection.execute(text(f"SELECT setval('{found}', ({most}), false)"))
