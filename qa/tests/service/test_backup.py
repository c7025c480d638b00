"""Backup and restore, also from one kind of database to the other."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from atpgraph.errors import InputError
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


def test_of_an_older_schema(make_front: Make, tmp_path: Path) -> None:
    front: Front = make_front()
    front.ask(90_001)
    file, old = tmp_path / "backup.zip", tmp_path / "old.zip"
    backup(front.service.settings, file)
    for version in (1, 99):
        with zipfile.ZipFile(file) as now, zipfile.ZipFile(old, "w") as then:
            for name in now.namelist():
                content = now.read(name)
                if name == "backup.json":
                    content = json.dumps({**json.loads(content), "version": version}).encode()
                then.writestr(name, content)
        new = front.service.settings.changed("store", {"folder": str(tmp_path / "new")}, "test")
        if version == 1:
            assert restore(new, old)["events"] == 1
        else:
            with pytest.raises(InputError, match="another version"):
                restore(new, old)


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
