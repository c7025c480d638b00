"""Several processes rank as one does, over one copy of the arrays."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from atpgraph_qa import Accepted, Advisor, Answered, Asked, Policy, Question
from atpgraph_qa.advisor.readers import ReaderError, Readers, attach, settled, share
from atpgraph_qa.timeline import growth
from atpgraph_qa.timeline.growth import PackedLines


@pytest.fixture(scope="module")
def readers(advisor: Advisor) -> Iterator[Readers]:
    with Readers(advisor, processes=1) as made:
        yield made


def questions(advisor: Advisor) -> list[Question]:
    titles = advisor.history.records.texts.titles
    return [Question(titles[place], asker=place % 50) for place in (3, 40, 77)]


def test_readers_follow_the_writer(advisor: Advisor, readers: Readers) -> None:
    now = advisor.history.now
    batches = [
        [Asked(10**7, "new zzyzx question", "", ["new tag"], 10**6, now + 5)],
        [Answered(10**7 + 1, 10**7, 10**6 + 1, now + 9), Accepted(10**7, 10**7 + 1, now + 10)],
    ]
    policy = Policy(inactive_days=300.0)
    for batch in [[], *batches]:
        advisor = advisor.observe(batch)
        readers.observe(batch)
        for question in questions(advisor):
            assert readers.ask(question, policy, top=4) == advisor.ask(question, policy, top=4)
    # One that ends is replaced, and knows what the others know.
    process = readers._readers[0].process
    os.kill(process.pid or 0, signal.SIGKILL)
    process.join()
    with pytest.raises(ReaderError, match="ask again"):
        readers.ask(questions(advisor)[0])
    for question in questions(advisor):
        assert readers.ask(question) == advisor.ask(question)
    assert readers._readers[0].process is not process


def test_errors_come_back(advisor: Advisor, readers: Readers) -> None:
    early = replace(questions(advisor)[0], at=np.datetime64("2001-01-01", "ms").item())
    with pytest.raises(ValueError, match="before the last post"):
        readers.ask(early)
    assert readers.ask(questions(advisor)[0]).people


def test_columns_grow_in_the_file(
    advisor: Advisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(growth, "_lent", {})  # a reader keeps its files open; this test must not
    file = tmp_path / "arrays"
    opened: Advisor = attach(file, *share(settled(advisor), file))
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
    again: Advisor = attach(file, *share(settled(advisor), tmp_path / "other"))
    assert len(again.history.records.answers) == len(before)


def test_packed_lines() -> None:
    lines = ["", "one", "zwölf", "\ud800", "last"]
    packed = PackedLines(lines)
    assert list(packed) == lines
    assert packed[-1] == "last"
    assert packed[1:3] == lines[1:3]
    with pytest.raises(IndexError):
        packed[5]
