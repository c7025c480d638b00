"""Backup and restore, also from one kind of database to the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from atpgraph.errors import InputError
from atpgraph.serve.backup import backup, restore
from atpgraph.serve.service import Service
from tests.serve.conftest import Front, Make


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
        assert again.desk.seq == 1
        assert again.desk.directory[3].opted_out
        assert again.first_token == ""
        front.service, service = again, front.service
        front.client.app.state.service = again  # type: ignore[attr-defined]
        front.client.app.state.door.database = again.database  # type: ignore[attr-defined]
        front.ask(90_002)
        assert [row["question"] for row in front.suggestions()] == [90_002, 90_001]
        front.service = service
    finally:
        again.stop()


def test_what_is_no_backup(make_front: Make, tmp_path: Path) -> None:
    front: Front = make_front()
    for content in (b"", b"PK nothing"):
        (tmp_path / "x.zip").write_bytes(content)
        with pytest.raises(InputError, match="is not a backup"):
            restore(front.service.settings, tmp_path / "x.zip")
