"""Learning again: in a process of its own, judged before it is used.

The child opens the last snapshot, learns new weights from what was known before the questions it
will be judged on, ranks these questions with the new and with the old weights, and writes its
verdict. The questions are those asked since the old weights were learnt, so that neither has seen
them. What is swapped in are the weights that were judged.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from atpgraph.errors import InputError
from atpgraph.util.files import atomic_path
from atpgraph_qa.advisor.advisor import Advisor
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.ranking.router import Router
from atpgraph_qa.service.engine import CALIBRATED, Engine
from atpgraph_qa.service.snapshots import Snapshots
from atpgraph_qa.service.store import tables
from atpgraph_qa.service.store.database import get_meta, put_meta
from atpgraph_qa.timeline.candidates import active_users
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.query import Query

LOG = logging.getLogger("atpgraph.serve")
_TRAINED = "trained_ms"


class Trainer:
    """Starts the child, waits for it, and swaps its weights in if they are not worse."""

    def __init__(self, engine: Engine, snapshots: Snapshots, folder: Path) -> None:
        self.engine, self.snapshots = engine, snapshots
        self.file = folder / "retrained.json"
        self.child: subprocess.Popen[bytes] | None = None
        self.last: dict[str, Any] = {}
        with engine.database.write() as connection:
            if not get_meta(connection, _TRAINED):
                put_meta(connection, _TRAINED, str(engine.current().history.last_ms))
            if not get_meta(connection, "retrained_ms"):
                put_meta(connection, "retrained_ms", str(engine.clock()))

    @property
    def running(self) -> bool:
        """Whether a child is at work."""
        return self.child is not None

    def start(self) -> None:
        """Start learning from what is known now."""
        if self.running:
            raise InputError("The service is learning already.")
        path = self.snapshots.write()
        with self.engine.database.write(acting=True) as connection:
            since = int(get_meta(connection, _TRAINED))
            put_meta(connection, "retrained_ms", str(self.engine.clock()))
        self.file.unlink(missing_ok=True)
        rules = self.engine.settings.retrain
        arguments = [path, self.file, since, rules.least_questions, rules.most_questions]
        command = [sys.executable, "-m", "atpgraph_qa.service.retrain", *map(str, arguments)]
        self.child = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        LOG.info("retraining", extra={"facts": {"pid": self.child.pid}})

    def tend(self) -> None:
        """Look after the child, and start one when it is time."""
        if self.child is not None and self.child.poll() is not None:
            self._finish(self.child.returncode)
        every = self.engine.settings.retrain.every_days
        if every and not self.running:
            with self.engine.database.read() as connection:
                last = int(get_meta(connection, "retrained_ms", "0"))
            if self.engine.clock() - last > every * DAY_MS:
                self.start()

    def wait(self, timeout: float) -> None:
        """Wait for the child and act on what it found."""
        if self.child is not None:
            self.child.wait(timeout)
            self._finish(self.child.returncode)

    def stop(self) -> None:
        """End the child; what it learnt is lost."""
        if self.child is not None and self.child.poll() is None:
            self.child.terminate()
            try:
                self.child.wait(10)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()

    def _finish(self, code: int) -> None:
        self.child = None
        try:
            found = json.loads(self.file.read_text(encoding="utf-8")) if code == 0 else {}
        except (OSError, ValueError):
            found = {}
        verdict = found.pop("verdict", "failed")
        name = f"retrained-{self.engine.clock()}"
        if verdict == "better":
            self._swap(found, name)
        judged = {key: found[key] for key in ("questions", "old_mrr", "new_mrr") if key in found}
        self.last = {"name": name, "state": "in use" if verdict == "better" else verdict, **judged}
        with self.engine.database.write(acting=True) as connection:
            connection.execute(
                tables.models.insert().values(
                    name=name, created_ms=self.engine.clock(), state=self.last["state"],
                    judged=json.dumps(judged),
                )
            )  # fmt: skip
        LOG.info("retrained", extra={"facts": self.last})

    def _swap(self, found: dict[str, Any], name: str) -> None:
        weights = Router.from_json(found["router"])
        engine = self.engine
        with self.snapshots.writing, engine.lock:
            engine.exchange(with_weights(engine.current(), weights), with_weights, weights)
            engine.model = name
            with engine.database.write(acting=True) as connection:
                put_meta(connection, _TRAINED, str(found["cut_ms"]))
                put_meta(connection, CALIBRATED, str(engine.clock() // DAY_MS + 1))
            self.snapshots.write()


def with_weights(advisor: Advisor, weights: Router) -> Advisor:
    """The advisor with other weights."""
    return replace(advisor, router=weights)


def judge(
    advisor: Advisor, since_ms: int, least: int, most: int, random_state: int = 0
) -> dict[str, Any]:
    """New weights, and how they rank the last questions beside the old ones."""
    history = advisor.history
    resolved = np.flatnonzero(history.best_answer >= 0)
    owner = history.answers.owner[history.best_answer[resolved]]
    asked = history.questions.asked_ms[resolved]
    fit = (owner >= 0) & (asked > since_ms) & (owner != history.questions.asker[resolved])
    chosen = resolved[fit][-most:]
    if len(chosen) < least:
        return {"verdict": "too few questions", "questions": len(chosen)}
    cut = int(history.questions.asked_ms[chosen[0]])
    past = History(history.records, cut, shared=True)
    new = Router("all", random_state).fit(past)
    scores = {"old": advisor.router, "new": new}
    mrr = {name: _mrr(router, past, chosen, history) for name, router in scores.items()}
    return {
        "verdict": "better" if mrr["new"] >= mrr["old"] else "worse",
        "questions": len(chosen),
        "old_mrr": mrr["old"],
        "new_mrr": mrr["new"],
        "cut_ms": int(history.last_ms),
        "router": new.to_json(),
    }


def _mrr(router: Router, past: History, questions: Any, full: History) -> float:
    total = 0.0
    for position in questions.tolist():
        query = Query.again(full.records, position, past)
        people = active_users(query)
        right = full.records.ids(full.answers.owner[full.best_answer[position]])
        scores = router.score(query, people)
        there = np.flatnonzero(people == right)
        if len(there):
            total += 1.0 / (1 + int((scores > scores[there[0]]).sum()))
    return total / len(questions)


def main(arguments: list[str]) -> None:
    """Run by the child: snapshot, file for the result, moment, least and most questions."""
    snapshot, file, since, least, most = arguments
    found = judge(Advisor.load(snapshot), int(since), int(least), int(most))
    with atomic_path(file) as temporary:
        temporary.write_text(json.dumps(found), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
