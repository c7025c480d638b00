"""Train in a separate process, and evaluate the new weights before using them.

The child loads the last snapshot and holds back the questions asked since the old weights were
learned, so that neither old nor new weights have seen them. It learns new weights from what was
known before, ranks the questions with both, and prints its verdict. The weights in use are always
those that were evaluated.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import tempfile
from dataclasses import replace
from typing import IO

import numpy as np

from atpgraph.util.arrays import Int64Array
from atpgraph_qa.advisor.advisor import Advisor
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.ranking.router import Router
from atpgraph_qa.service.engine import CALIBRATED, Engine
from atpgraph_qa.service.maintenance import Snapshots
from atpgraph_qa.service.problems import ProblemError
from atpgraph_qa.service.tables import Row, add, get_meta, meta, models, put_meta
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.query import Query, active_users

LOG = logging.getLogger("atpgraph.serve")


class Trainer:
    """Starts the child, waits for it, and uses its weights if they are not worse."""

    def __init__(self, engine: Engine, snapshots: Snapshots) -> None:
        self.engine, self.snapshots = engine, snapshots
        self.child: subprocess.Popen[bytes] | None = None
        self._said: IO[bytes]
        self.last: Row = {}
        with engine.database.write() as connection:  # unless it started before
            trained = str(engine.advisor.history.last_ms)
            add(connection, meta, name="trained_ms", value=trained)
            add(connection, meta, name="retrained_ms", value=str(engine.clock()))

    @property
    def running(self) -> bool:
        """Whether a child is running."""
        return self.child is not None

    def start(self) -> None:
        """Start training on the current history."""
        with self.snapshots.writing:  # others who start wait here, then see that it runs
            if self.running:
                raise ProblemError(409, "The service is training already.", wait=60)
            path = self.snapshots.write()
            with self.engine.database.write(acting=True) as connection:
                since = get_meta(connection, "trained_ms")
                put_meta(connection, "retrained_ms", self.engine.clock())
            rules = self.engine.settings.retrain
            arguments = [path, since, rules.least_questions, rules.most_questions]
            command = [sys.executable, "-m", "atpgraph_qa.service.training", *map(str, arguments)]
            # A file without a name: weights learned from people are not left behind or readable.
            self._said, quiet = tempfile.TemporaryFile(), subprocess.DEVNULL  # noqa: SIM115
            self.child = subprocess.Popen(command, stdin=quiet, stdout=self._said, stderr=quiet)
        LOG.info("retraining", extra={"facts": {"pid": self.child.pid}})

    def tend(self) -> None:
        """Use the result of a finished child, and start a child when it is time."""
        if self.child is not None and self.child.poll() is not None:
            self.wait(0)
        every = self.engine.settings.retrain.every_days
        if every and not self.running:
            with self.engine.database.read() as connection:
                last = int(get_meta(connection, "retrained_ms", "0"))
            if self.engine.clock() - last > every * DAY_MS:
                self.start()

    def wait(self, timeout: float) -> None:
        """Wait for the child and use its result."""
        if self.child is not None:
            code = self.child.wait(timeout)
            with self._said as said:
                said.seek(0)
                found = json.load(said) if code == 0 else {}
            self.child = None
            self.take(found)

    def stop(self) -> None:
        """End the child and discard what it learned."""
        if self.child is not None:
            self.child.kill()
            self.child.wait()
            self._said.close()

    def take(self, found: Row) -> None:
        """Record the result of a child, and use its weights if they are not worse."""
        engine, now = self.engine, self.engine.clock()
        state, name = found.get("verdict", "failed"), f"retrained-{now}"
        if state == "better":
            weights, state = Router.from_json(found["router"]), "in use"
            with self.snapshots.writing, engine.lock:
                engine.exchange(with_weights(engine.advisor, weights), (with_weights, weights))
                engine.model = name
                with engine.database.write(acting=True) as connection:
                    put_meta(connection, "trained_ms", found["cut_ms"])
                    put_meta(connection, CALIBRATED, now // DAY_MS + 1)
                self.snapshots.write(urgent=True)
        wanted = ("questions", "old_mrr", "new_mrr")
        judged: Row = {key: found[key] for key in wanted if key in found}
        self.last = {"name": name, "state": state, **judged}
        with engine.database.write(acting=True) as connection:
            add(connection, models, name=name, created_ms=now, state=state, judged=judged)
        LOG.info("retrained", extra={"facts": self.last})


def with_weights(advisor: Advisor, weights: Router) -> Advisor:
    """Return the advisor with other weights; readers call this, too."""
    return replace(advisor, router=weights)


def judge(advisor: Advisor, since_ms: int, least: int, most: int, random_state: int = 0) -> Row:
    """Return new weights, and the MRR of the new and the old weights on the last questions."""
    history = advisor.history
    resolved = np.flatnonzero(history.best_answer >= 0)
    owner = history.answers.owner[history.best_answer[resolved]]
    asked = history.questions.asked_ms[resolved]
    fit = (owner >= 0) & (asked > since_ms) & (owner != history.questions.asker[resolved])
    chosen = resolved[fit][-most:]
    if len(chosen) < least:
        return {"verdict": "too few questions", "questions": len(chosen)}
    past = History(history.records, int(history.questions.asked_ms[chosen[0]]))
    new = Router("all", random_state).fit(past)
    old_mrr, new_mrr = (_mrr(each, past, chosen, history) for each in (advisor.router, new))
    return {
        "verdict": "better" if new_mrr >= old_mrr else "worse",
        "questions": len(chosen),
        "old_mrr": old_mrr,
        "new_mrr": new_mrr,
        "cut_ms": int(history.last_ms),
        "router": new.to_json(),
    }


def _mrr(router: Router, past: History, questions: Int64Array, full: History) -> float:
    total = 0.0
    for position in questions.tolist():
        query = Query.again(full.records, position, past)
        people = active_users(query)
        right = people == full.records.ids(full.answers.owner[full.best_answer[position]])
        scores = router.score(query, people)
        if right.any():
            total += 1.0 / (1 + int((scores > scores[right]).sum()))
    return total / len(questions)


if __name__ == "__main__":
    print(json.dumps(judge(Advisor.load(sys.argv[1]), *map(int, sys.argv[2:]))))
