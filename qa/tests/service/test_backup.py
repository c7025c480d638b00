"""Backup and restore, also from one kind of database to the other."""

from __future__ import annotations

import contextlib
import json
import zipfile
from pathlib import Path

import pytest
from sqlalchemy import select

from atpgraph.errors import InputError
from atpgraph_qa.service import tables
from atpgraph_qa.service.database import Database
from atpgraph_qa.service.maintenance import backup, restore
from atpgraph_qa.service.service import Service
from qa.tests.service.conftest import Front, Make


def test_from_sqlite_to_any(make_front: Make, database_url: str, tmp_path: Path) -> None:
    front: Front = make_front()
    front.ask(90_001)
    front.call("PATCH", "/v1/people/3", {"opted_out": True})
    file = tmp_path / "backup.zip"
    counts = backup(front.service.settings, file)  # while it runs
    assert counts["events"] == counts["suggestions"] == counts["people"] == 1
    front.ask(90_002)
    new = front.service.settings.changed(
        "store", {"folder": str(tmp_path / "new"), "database": database_url}, "test"
    )
    assert restore(new, file)["tokens"] == 5
    with pytest.raises(InputError, match="not empty"):
        restore(new, file)
    again = Service(new, None, clock=front.clock)
    try:
        assert again.engine.seq == 1
        assert again.engine.directory[3].opted_out
        assert again.first_token == ""
        front.service, service = again, front.service
        front.client.app.state.service = again  # type: ignore[attr-defined]
        front.client.app.state.auth.service = again  # type: ignore[attr-defined]
        front.ask(90_002)
        assert [row["question"] for row in front.suggestions()] == [90_002, 90_001]
        front.service = service
    finally:
        again.stop()


def test_of_0_2(make_front: Make, database_url: str, tmp_path: Path) -> None:
    old, file = Database(f"sqlite:///{tmp_path / 'old.sqlite'}"), tmp_path / "old.zip"
    reason = {"kind": "similar", "text": "answered “Why?”", "questions": [17]}
    person = {"user": 3, "score": 1.0, "confidence": 0.5, "reasons": [reason]}
    values = {
        "question": 90_001, "round": 0, "created_ms": 5, "shadow": 0, "model": "m",
        "state": "answered", "people": json.dumps([person]), "baseline": "[]", "decisions": "[]",
        "ranking": json.dumps([{"person": 3, "confidence": 0.5}]), "notes": "[]",
        "confidence": 0.5, "abstains": "", "candidates": 9, "changed_ms": 6, "outcome": 3,
        "place": 1, "resolved_ms": 6,
    }  # fmt: skip
    with contextlib.closing(old), zipfile.ZipFile(file, "w") as made:
        with old.write() as connection:
            old.migrate_to(connection, 2)
            columns, places = ", ".join(values), ", ".join("?" * len(values))
            connection.exec_driver_sql(
                f"INSERT INTO suggestions ({columns}) VALUES ({places})", tuple(values.values())
            )
            connection.exec_driver_sql("INSERT INTO meta VALUES ('epoch', '1')")
            names = connection.exec_driver_sql("SELECT name FROM sqlite_master WHERE type='table'")
            for (name,) in names.all():
                rows = connection.exec_driver_sql(f"SELECT * FROM {name}").mappings()
                lines = [json.dumps(dict(row)) for row in rows]
                made.writestr(f"tables/{name}.jsonl", "\n".join(lines))
        head = {
            "format": "atpgraph-serve-backup",
            "version": 2,
            "rows": {"suggestions": 1, "halves": 3},
        }
        made.writestr("backup.json", json.dumps(head))
    settings = make_front().service.settings.changed(
        "store", {"folder": str(tmp_path / "new"), "database": database_url}, "test"
    )
    assert restore(settings, file)["suggestions"] == 1
    with contextlib.closing(Database.of(settings)) as database, database.read() as connection:
        (found,) = tables.find(connection, select(tables.suggestions))
        assert (found["mode"], found["sent_ms"], found["asked_answered"]) == ("automatic", 5, True)
        assert tables.find(connection, select(tables.quotes)) == [{"question": 17, "suggestion": 1}]
        (counted,) = tables.find(connection, select(tables.calibration))
        assert (counted["people"], counted["observed"]) == (1, 1)


@pytest.mark.parametrize("version", [99, [], None])
def test_of_another_version(make_front: Make, tmp_path: Path, version: object) -> None:
    front: Front = make_front()
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as made:
        head = {"format": "atpgraph-serve-backup", "version": version}
        made.writestr("backup.json", json.dumps(head))
    with pytest.raises(InputError, match="another version"):
        restore(front.service.settings, tmp_path / "x.zip")


def test_a_snapshot_that_goes_while_it_is_packed(make_front: Make, tmp_path: Path) -> None:
    front: Front = make_front()
    settings, write = front.service.settings, front.service.snapshots.write
    real = zipfile.ZipFile.write
    with pytest.MonkeyPatch.context() as patch:

        def gone(archive: zipfile.ZipFile, path: Path, name: str) -> None:
            patch.setattr(zipfile.ZipFile, "write", real)
            front.clock.pass_hours(1)
            write()  # the service writes its next one, and removes this one
            real(archive, path, name)

        patch.setattr(zipfile.ZipFile, "write", gone)
        backup(settings, tmp_path / "backup.zip")
    new = settings.changed("store", {"folder": str(tmp_path / "new")}, "test")
    restore(new, tmp_path / "backup.zip")
    again = Service(new, None, clock=front.clock)
    again.stop()


def test_what_is_no_backup(make_front: Make, tmp_path: Path) -> None:
    front: Front = make_front()
    for content in (b"", b"PK nothing"):
        (tmp_path / "x.zip").write_bytes(content)
        with pytest.raises(InputError, match="is not a backup"):
            restore(front.service.settings, tmp_path / "x.zip")


def test_a_repaired_archive_that_lacks_a_table(make_front: Make, tmp_path: Path) -> None:
    front: Front = make_front()
    front.call("DELETE", "/v1/people/3")
    backup(front.service.settings, tmp_path / "backup.zip")
    with (
        zipfile.ZipFile(tmp_path / "backup.zip") as whole,
        zipfile.ZipFile(tmp_path / "part.zip", "w") as part,
    ):
        for name in whole.namelist():
            if name != "tables/forgotten.jsonl":  # person 3 would come back
                part.writestr(name, whole.read(name))
    new = front.service.settings.changed("store", {"folder": str(tmp_path / "new")}, "test")
    with pytest.raises(InputError, match="damaged; nothing was restored"):
        restore(new, tmp_path / "part.zip")
    restore(new, tmp_path / "backup.zip")
