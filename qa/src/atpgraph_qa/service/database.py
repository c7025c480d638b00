"""SQLite or PostgreSQL: transactions, migrations, and the lock that lets one process act."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, create_engine, event, select, text
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, OperationalError
from sqlalchemy.exc import TimeoutError as PoolTimeout

from atpgraph.errors import InputError, MissingDependencyError
from atpgraph.util.files import fcntl
from atpgraph_qa.service.problems import ProblemError
from atpgraph_qa.service.settings import Settings
from atpgraph_qa.service.suggestions import fill_reports
from atpgraph_qa.service.tables import METADATA, get_meta, meta, put_meta

FILE = "service.sqlite"
_LOCK = 0x617470  # of PostgreSQL's advisory locks: "atp"
_APPEND = 0x617471


class DatabaseGoneError(ProblemError):
    """The database does not answer; try again."""


class NotInChargeError(ProblemError):
    """Another process acts on this database."""

    exit_code = 2


class Database:
    """Transactions on ``sqlite:///FILE`` or ``postgresql://…``."""

    def __init__(self, url: str) -> None:
        try:
            parsed = make_url(url)
        except ArgumentError:
            raise InputError("store.database is not the URL of a database.") from None
        if parsed.drivername in ("postgres", "postgresql"):
            parsed = parsed.set(drivername="postgresql+psycopg")
        self.is_sqlite = parsed.get_backend_name() == "sqlite"
        self.epoch = 0
        self._writing = threading.RLock()
        self._held: Any = None
        self.file = Path(parsed.database or "") if self.is_sqlite else Path()
        if self.is_sqlite:
            if self.file.parent.is_dir():  # SQLite copies its permissions to the log
                self.file.touch(0o600)
                make_private(self.file)
            more: dict[str, Any] = {"connect_args": {"check_same_thread": False, "timeout": 20}}
        else:
            options = {"connect_timeout": 5, "options": "-c statement_timeout=30000"}
            more = {"connect_args": options, "pool_timeout": 5, "pool_pre_ping": True}
        try:
            self.engine = create_engine(parsed, pool_size=8, **more)
        except (ModuleNotFoundError, NoSuchModuleError):
            raise MissingDependencyError(
                "psycopg", "postgres", "PostgreSQL", "atpgraph-qa"
            ) from None
        if self.is_sqlite:
            event.listen(self.engine, "connect", _prepare_sqlite)
            event.listen(self.engine, "begin", _begin)

    @classmethod
    def of(cls, settings: Settings) -> Database:
        """Return the database of the settings, SQLite in the work folder by default."""
        folder = Path(settings.store.folder)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return cls(settings.store.database or f"sqlite:///{folder / FILE}")

    @contextlib.contextmanager
    def read(self) -> Iterator[Connection]:
        """Open a transaction that only reads."""
        with _gone(), self.engine.connect() as connection, connection.begin():
            yield connection

    @contextlib.contextmanager
    def write(self, *, acting: bool = False) -> Iterator[Connection]:
        """Open a transaction that writes; with `acting`, only while this process is in charge."""
        with _gone(), contextlib.ExitStack() as stack:
            if self.is_sqlite:  # one writer at a time: queue here instead of polling the file
                stack.enter_context(self._writing)
            connection = stack.enter_context(self.engine.connect())
            connection = connection.execution_options(writes=True)
            connection.info["after"] = after = list[Callable[[], object]]()
            stack.enter_context(connection.begin())
            if acting:
                query = select(meta.c.value).where(meta.c.name == "epoch")
                epoch = connection.execute(query.with_for_update(read=True)).scalar()
                if int(epoch or 0) != self.epoch:
                    said = "Another process has taken over this database."
                    raise NotInChargeError(503, said, wait=30)
            yield connection
        for work in after:
            work()

    def migrate(self) -> int:
        """Bring the tables up to date; return the version."""
        with self.write() as connection:
            return self.migrate_to(connection, migrations()[-1][0])

    def migrate_to(self, connection: Connection, wanted: int) -> int:
        """Bring the tables at least to a version; return it."""
        serial = "INTEGER PRIMARY KEY" if self.is_sqlite else "BIGSERIAL PRIMARY KEY"
        serialize(connection)
        versions = "CREATE TABLE IF NOT EXISTS schema_version (version INTEGER PRIMARY KEY)"
        connection.execute(text(versions))
        query = text("SELECT COALESCE(MAX(version), 0) FROM schema_version")
        done = int(connection.execute(query).scalar_one())
        known = migrations()
        if done > known[-1][0]:
            raise InputError(
                f"The database has schema version {done}, this atpgraph knows {known[-1][0]}: "
                "use the newer atpgraph."
            )
        for version, script in known[done:wanted]:
            for statement in _statements(script.replace("{serial}", serial)):
                connection.exec_driver_sql(statement)
            if version == 3:
                fill_reports(connection)
            connection.execute(text(f"INSERT INTO schema_version VALUES ({version})"))
        return wanted

    def take_charge(self) -> None:
        """Become the process that acts on the database, or raise an error if there is one.

        A lock excludes a second process. The epoch, which is checked in every acting transaction,
        excludes a process that lost its lock without noticing.
        """
        if self.is_sqlite:
            self._held = _file_lock(self.file.with_suffix(".lock"))
        else:
            with _gone():
                connection = self.engine.connect()
                query = text(f"SELECT pg_try_advisory_lock({_LOCK})")
                mine = connection.execute(query).scalar_one()
                connection.commit()
            if not mine:
                connection.close()
                said = "Another process serves this database; stop it first."
                raise NotInChargeError(503, said)
            self._held = connection
        with self.write() as connection:
            self.epoch = int(get_meta(connection, "epoch", "0")) + 1
            put_meta(connection, "epoch", self.epoch)

    def erase_deleted(self) -> None:
        """Leave no copy of deleted rows in the log of SQLite, or the tables of PostgreSQL."""
        with _gone(), self.engine.connect() as connection:
            if self.is_sqlite:
                with self._writing:
                    raw: Any = connection.connection.driver_connection
                    raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            else:
                alone = connection.execution_options(isolation_level="AUTOCOMMIT")
                alone.detach()  # it is closed then, with its timeout
                alone.execute(text("SET statement_timeout = 0"))
                alone.execute(text(f"VACUUM (FULL) {', '.join(METADATA.tables)}"))

    def close(self) -> None:
        """Release the lock and the connections."""
        if self._held is not None:
            if self.is_sqlite:
                os.close(self._held)
            else:
                with contextlib.suppress(DBAPIError):
                    self._held.close()
            self._held = None
        self.engine.dispose()


def after_commit(connection: Connection, work: Callable[[], object]) -> None:
    """Call a function once a writing transaction is committed."""
    connection.info["after"].append(work)


def migrations() -> list[tuple[int, str]]:
    """Return number and text of every migration, in order."""
    folder = files("atpgraph_qa.service").joinpath("migrations")
    found = [entry for entry in folder.iterdir() if entry.name.endswith(".sql")]
    return sorted((int(entry.name[:4]), entry.read_text(encoding="utf-8")) for entry in found)


def serialize(connection: Connection) -> None:
    """Make sequence numbers follow the order in which transactions are committed."""
    if connection.dialect.name != "sqlite":
        connection.execute(text(f"SELECT pg_advisory_xact_lock({_APPEND})"))


def make_private(path: Path) -> None:
    """Make a file, or a folder with its content, private to this user."""
    for each in (path, *path.rglob("*")):
        with contextlib.suppress(OSError):  # another system, or a file of somebody else
            each.chmod(0o700 if each.is_dir() else 0o600)


def _prepare_sqlite(connection: Any, _: Any) -> None:
    connection.isolation_level = None  # `_begin` starts transactions
    for pragma in (
        "journal_mode=WAL", "synchronous=FULL", "busy_timeout=20000", "foreign_keys=ON",
        "secure_delete=ON",
    ):  # fmt: skip
        connection.execute(f"PRAGMA {pragma}")


def _begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get("writes")
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _statements(script: str) -> list[str]:
    lines = [line for line in script.splitlines() if not line.lstrip().startswith("--")]
    return [part.strip() for part in "\n".join(lines).split(";") if part.strip()]


def _file_lock(path: Path) -> int:
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    if fcntl is not None:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            said = f"Another process serves {path.parent}; stop it first, or name another folder."
            raise NotInChargeError(503, said) from None
    return handle


@contextlib.contextmanager
def _gone() -> Iterator[None]:
    """Raise DatabaseGoneError if the database does not answer; leave other errors alone."""
    try:
        yield
    except PoolTimeout as error:
        raise DatabaseGoneError(503, "The database is busy.", wait=5) from error
    except DBAPIError as error:
        # SQLite raises OperationalError for a wrong statement, too.
        wrong = getattr(error.orig, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR
        if error.connection_invalidated or (isinstance(error, OperationalError) and not wrong):
            raise DatabaseGoneError(503, "The database does not answer.", wait=5) from error
        raise
