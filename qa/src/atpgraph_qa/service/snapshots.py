"""Snapshots of the advisor: restart is the last one plus the events since.

An advisor does not change, so it is written while routes and events go on.
"""

from __future__ import annotations

import hashlib
import json
import logging
import shutil
import threading
from pathlib import Path

from atpgraph.errors import InputError
from atpgraph_qa.advisor.advisor import Advisor
from atpgraph_qa.service.database import make_private
from atpgraph_qa.service.engine import Engine
from atpgraph_qa.service.forget import forget_in_history
from atpgraph_qa.service.tables import get_meta, put_meta

LOG = logging.getLogger("atpgraph.serve")


class Snapshots:
    """The snapshots of a work folder.

    `writing` is held while one is written. Who changes what the last snapshot may hold, as by
    forgetting somebody, takes it before ``engine.lock``, so that no older one comes after.
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
        """Give the engine its advisor: the snapshot, or a model that was not seen before."""
        engine = self.engine
        with engine.database.read() as connection:
            kept = json.loads(get_meta(connection, "snapshot", "{}"))
            known = get_meta(connection, "base_model")
        given = "" if model is None else _fingerprint(model)
        if kept and given in ("", known) and (self.folder / kept["name"]).is_dir():
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
        if given and given != known:
            with engine.database.write(acting=True) as connection:
                put_meta(connection, "base_model", given)
        if gone or (given and given != known):
            self.write()

    def due(self) -> bool:
        """Return whether enough happened since the last one."""
        new, store = self.engine.seq - self.written_seq, self.engine.settings.store
        passed = self.engine.clock() - self.written_ms > 60_000 * store.snapshot_minutes
        return new >= store.snapshot_events or (new > 0 and passed)

    def write(self) -> Path:
        """Write the advisor as it is, then remove older snapshots."""
        with self.writing:
            with self.engine.lock:
                advisor, model, seq = self.engine.current(), self.engine.model, self.engine.seq
            name = f"{seq:012d}-{self.engine.clock()}"
            path = self.folder / name
            advisor = advisor.merged()
            advisor.save(path)
            make_private(path)
            with self.engine.database.write(acting=True) as connection:
                kept = {"name": name, "seq": seq, "model": model}
                put_meta(connection, "snapshot", json.dumps(kept))
            for other in self.folder.iterdir():
                if other.name != name:
                    shutil.rmtree(other, ignore_errors=True)
            self.engine.go_on_from(advisor, seq)
            self.written_seq, self.written_ms = seq, self.engine.clock()
        LOG.info("snapshot", extra={"facts": {"seq": seq}})
        return path


def _fingerprint(model: Path) -> str:
    """Return what tells one trained model from another."""
    try:
        return hashlib.sha256((model / "model.json").read_bytes()).hexdigest()
    except OSError:
        raise InputError(
            f"{model} is not a trained model; make one with 'atp qa train SITE -o MODEL'."
        ) from None
