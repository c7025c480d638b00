"""Snapshots of the advisor: restart is the last one plus the events since.

They are written by a copy of the process (:mod:`~atpgraph_qa.service.apart`), while routes go on.
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
from atpgraph_qa.service.apart import run_apart
from atpgraph_qa.service.desk import Desk
from atpgraph_qa.service.forget_history import forget_in_history
from atpgraph_qa.service.store.database import get_meta, put_meta

LOG = logging.getLogger("atpgraph.serve")
_META = "snapshot"
_BASE = "base_model"


class Snapshots:
    """The snapshots of a work folder.

    Parameters
    ----------
    desk : Desk
    folder : path
        The work folder.

    Attributes
    ----------
    writing : lock
        Held while a snapshot is written. Who changes what the last snapshot may hold, as by
        forgetting somebody, takes it before ``desk.acting``, so that no older one comes after.
    """

    def __init__(self, desk: Desk, folder: Path) -> None:
        self.desk = desk
        self.folder = folder / "snapshots"
        self.folder.mkdir(parents=True, exist_ok=True)
        self.writing = threading.RLock()
        self.written_seq = 0
        self.written_ms = desk.clock()

    def open(self, model: Path | None) -> None:
        """Give the desk its advisor: the snapshot, or a model that was not seen before."""
        with self.desk.database.read() as connection:
            kept = json.loads(get_meta(connection, _META, "{}"))
            known = get_meta(connection, _BASE)
        given = "" if model is None else fingerprint(model)
        if kept and (model is None or given == known) and (self.folder / kept["name"]).is_dir():
            advisor = Advisor.load(self.folder / kept["name"])
            name, seq = kept["model"], int(kept["seq"])
        elif model is not None:
            advisor, name, seq = Advisor.load(model), given[:12], 0
        else:
            raise InputError("There is no snapshot yet: name a model that 'atp qa train' made.")
        advisor, forgotten = self._without_forgotten(advisor)
        self.desk.take_over(advisor, name, seq)
        self.written_seq = seq
        if given and given != known:
            with self.desk.database.write(acting=True) as connection:
                put_meta(connection, _BASE, given)
        if forgotten or (given and given != known):
            self.write()

    def due(self) -> bool:
        """Whether enough happened since the last one."""
        new, store = self.desk.seq - self.written_seq, self.desk.settings.store
        passed = self.desk.clock() - self.written_ms > 60_000 * store.snapshot_minutes
        return new >= store.snapshot_events or (new > 0 and passed)

    def write(self) -> Path:
        """Write the advisor as it is, then remove older snapshots."""
        with self.writing:
            with self.desk.acting:
                advisor, model, seq = self.desk.current(), self.desk.model, self.desk.seq
            name = f"{seq:012d}-{self.desk.clock()}"
            path = self.folder / name
            if not run_apart(lambda: advisor.save(path)):
                advisor.save(path)
            with self.desk.database.write(acting=True) as connection:
                kept = {"name": name, "seq": seq, "model": model}
                put_meta(connection, _META, json.dumps(kept))
            for other in self.folder.iterdir():
                if other.name != name:
                    shutil.rmtree(other, ignore_errors=True)
            self.written_seq, self.written_ms = seq, self.desk.clock()
        LOG.info("snapshot", extra={"facts": {"seq": seq}})
        return path

    def _without_forgotten(self, advisor: Advisor) -> tuple[Advisor, int]:
        forgetter = self.desk.forgetter
        gone = [user for user in advisor.history.users.tolist() if user in forgetter]
        for user in gone:
            advisor = forget_in_history(advisor, user)
        return advisor, len(gone)


def fingerprint(model: Path) -> str:
    """What tells one trained model from another."""
    file = model / "model.json"
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        raise InputError(
            f"{model} is not a trained model; make one with 'atp qa train SITE -o MODEL'."
        ) from None
