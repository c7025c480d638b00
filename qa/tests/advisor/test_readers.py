"""Several processes rank as one does, over one copy of the arrays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from atpgraph_qa import (
    Accepted,
    Advisor,
    Answered,
    Asked,
    Forgotten,
    Newcomer,
    Policy,
    Question,
    Suggestions,
)
from atpgraph_qa.advisor.readers import Readers, attach, share
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.timeline.query import Query
from atpgraph_qa.timeline.tables import TextLines


@pytest.fixture
def readers(advisor: Advisor) -> Iterator[Readers]:
    with Readers(advisor, processes=1) as made:
        yield made


def questions(advisor: Advisor) -> list[Question]:
    titles = advisor.history.records.titles
    return [Question(titles[place], asker=place % 50) for place in (3, 40, 77)]


def ask(readers: Readers, advisor: Advisor, question: Question, policy: Policy) -> Suggestions:
    with readers.ranker(advisor) as ranker:
        return advisor.ask(question, policy, ranker=ranker)


def _check_work(advisor: Advisor, readers: Readers) -> None:
    """Check that the writer does not compute what readers do."""
    query, codes = Query.now(advisor.history, questions(advisor)[0]), np.arange(20)
    user = int(advisor.history.users[0])
    with readers.ranker(advisor) as ranker:
        scores, reasons = ranker.scores(query, codes), ranker.reasons(query, [user])
    assert not {"match", "closeness"} & set(vars(query))
    np.testing.assert_array_equal(scores, advisor.ranker.scores(query, codes))
    assert reasons == advisor.ranker.reasons(query, [user])


def test_readers_follow_the_writer(advisor: Advisor, readers: Readers) -> None:
    now, policy = advisor.history.now, Policy(inactive_days=300.0)
    batches = [
        [Asked(10**7, "new zzyzx question", "", ["new tag"], 10**6, now + 5)],
        [Answered(10**7 + 1, 10**7, 10**6 + 1, now + 9), Accepted(10**7, 10**7 + 1, now + 10)],
        [Asked(10**7 + 2, "a week later", at_ms=now + 8 * DAY_MS)],
    ]

    def check() -> None:
        for question in questions(advisor):
            assert ask(readers, advisor, question, policy) == advisor.ask(question, policy)

    check()
    _check_work(advisor, readers)
    for batch in batches:
        advisor = advisor.observe(batch)
        readers.change(advisor, Advisor.observe, batch)
        check()
    people = [Newcomer(9001, tags=tuple(advisor.history.tags.names[:3]))]
    advisor = advisor.welcome(people)
    readers.change(advisor, Advisor.welcome, people)
    check()
    # One that ends is replaced, and knows what the others know.
    process = readers._readers[0].process
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    for _ in range(2):
        check()
    assert readers._readers[0].process is not process
    # New ones start while events come.
    merged = advisor.merged()
    started = readers.started(merged)
    late = [Asked(10**7 + 3, "another zzyzx question", at_ms=advisor.history.now + 1)]
    advisor = merged.observe(late)
    for reader in started:
        reader.catch_up([(Advisor.observe, late)])
    readers.restart(advisor, started)
    check()
    advisor = advisor.observe([Forgotten(int(advisor.history.users[3]))])
    readers.restart(advisor)
    check()


def test_what_a_killed_process_left_is_removed(
    advisor: Advisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    command = (
        "from atpgraph.util.files import temporary_folder\n"
        "with temporary_folder('atp-readers') as folder: print(folder); input()"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        [sys.executable, "-uc", command], env=environment, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        folder = Path(process.stdout.readline().strip())
        (folder / "advisor.json").write_text("titles")
        Readers(advisor, processes=1).close()
        assert folder.exists()  # its process lives
        process.kill()
    Readers(advisor, processes=1).close()
    assert list(tmp_path.iterdir()) == []


def test_columns_grow_in_the_file(advisor: Advisor, tmp_path: Path) -> None:
    share(advisor, tmp_path)
    opened = attach(tmp_path)
    before = opened.history.records.answers
    question = int(opened.history.questions.id[0])
    later = opened.observe([Answered(10**7, question, 5, opened.history.now + 1)])
    after = later.history.records.answers
    assert len(after) == len(before) + 1
    for name in ("given_ms", "owner", "id"):
        old, new = (
            getattr(table, name).__array_interface__["data"][0] for table in (before, after)
        )
        assert old == new
    # What another process sees in the file stays as it was.
    again = attach(tmp_path)
    assert len(again.history.records.answers) == len(before)
    assert again.ask(questions(advisor)[0]) == advisor.ask(questions(advisor)[0])


def test_newcomers_are_known_to_readers(advisor: Advisor, tmp_path: Path) -> None:
    advisor = advisor.welcome([Newcomer(9001, tags=tuple(advisor.history.tags.names[:3]))])
    share(advisor, tmp_path)
    opened = attach(tmp_path)
    for question in questions(advisor):
        query = Query.now(advisor.open_history, question)
        again = Query.now(opened.open_history, question)
        codes = query.history.codes([9001])
        np.testing.assert_array_equal(
            opened.ranker.scores(again, codes), advisor.ranker.scores(query, codes)
        )
        assert opened.ranker.reasons(again, [9001]) == advisor.ranker.reasons(query, [9001])


def test_lines_of_text() -> None:
    lines = ["", "one", "zwölf", "\ud800", "last"]
    packed = TextLines.of(lines[:2]).grown(lines[2:])
    assert list(packed) == lines
    assert packed[-1] == "last"
    assert packed[1:3] == lines[1:3]
    with pytest.raises(IndexError):
        packed[5]
