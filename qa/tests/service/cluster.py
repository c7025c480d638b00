"""A PostgreSQL of its own on loopback, that can be stopped and started again."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)


def why_not() -> str:
    """Why there can be none here; empty if there can."""
    if not BINARIES:
        return "PostgreSQL is not installed in /usr/lib/postgresql"
    if os.getuid() == 0 and shutil.which("runuser") is None:
        return "PostgreSQL does not run as root, and there is no runuser"
    return ""


def _run(*command: str) -> None:
    """PostgreSQL refuses to be run by root."""
    user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
    subprocess.run([*user, *command], check=True, capture_output=True)


@dataclass(frozen=True)
class Cluster:
    """A running server; its data are gone at the end."""

    folder: Path
    port: int

    @classmethod
    @contextlib.contextmanager
    def start(cls) -> Iterator[Cluster]:
        """Make one and run it."""
        folder = Path("/tmp") / f"atp-postgres-{uuid.uuid4().hex[:8]}"
        folder.mkdir(mode=0o700)
        if os.getuid() == 0:
            user = pwd.getpwnam("postgres")
            os.chown(folder, user.pw_uid, user.pw_gid)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            made = cls(folder, free.getsockname()[1])
        try:
            initdb = [str(BINARIES[0] / "initdb"), "-D", str(made._data), "--no-sync"]
            _run(*initdb, "--auth", "trust", "--username", "atp")
            made.resume()
            with made._connected("postgres") as connection:
                connection.execute("CREATE DATABASE atp")
            yield made
        finally:
            with contextlib.suppress(subprocess.CalledProcessError):
                made.stop()
            shutil.rmtree(folder, ignore_errors=True)

    @property
    def _data(self) -> Path:
        return self.folder / "data"

    @property
    def url(self) -> str:
        """Where databases are."""
        return f"postgresql://atp@127.0.0.1:{self.port}"

    def resume(self) -> None:
        """Run it, or run it again."""
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -k {self.folder} -c fsync=off"
        self._control("-l", str(self.folder / "log"), "-o", options, "start")

    def stop(self) -> None:
        """At once, as if the machine were gone."""
        self._control("-m", "immediate", "stop")

    def _control(self, *arguments: str) -> None:
        _run(str(BINARIES[0] / "pg_ctl"), "-D", str(self._data), "-w", *arguments)

    def empty_database(self) -> str:
        """The one database, emptied: a new one each time would be 300 files to make and delete."""
        with self._connected("atp") as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = 'atp' AND pid <> pg_backend_pid()"
            )
            connection.execute("DROP SCHEMA public CASCADE")
            connection.execute("CREATE SCHEMA public")
        return f"{self.url}/atp"

    def files(self) -> list[Path]:
        """The files of all databases as they are on disk now; not the write-ahead log."""
        with self._connected("atp") as connection:
            connection.execute("CHECKPOINT")
        return [path for path in (self._data / "base").rglob("*") if path.is_file()]

    def _connected(self, database: str) -> Any:
        import psycopg

        return psycopg.connect(f"{self.url}/{database}", autocommit=True)
