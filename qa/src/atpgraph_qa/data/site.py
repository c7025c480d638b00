"""An ingested site as arrays.

Posts come in the order of their dates (then ids): newer dumps are not in any order. Ids that are
missing are −1: the owner of a post whose author is unknown, the accepted answer of a question
without one. All times are int64 milliseconds since 1970-01-01 UTC.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from atpgraph.errors import InputError
from atpgraph.util.arrays import Int64Array
from atpgraph_qa.data.arrow import load_arrow
from atpgraph_qa.data.schema import BOUNTY_CLOSE, BOUNTY_START
from atpgraph_qa.data.store import read_manifest, read_table

NOBODY = -1
DAY_MS = 24 * 3600 * 1000
_PART = 1 << 16
MOST_DAYS = 1e6  # of a setting: more would not fit into milliseconds


@dataclass(frozen=True, eq=False)
class Questions:
    """Questions by date.

    Attributes
    ----------
    id, created_ms : int64 arrays
        Id and time of asking.
    asker : int64 array
        User id, −1 if unknown.
    accepted : int64 array
        Position in :class:`Answers` of the accepted answer, −1 for none. An accepted answer that
        the dump does not hold, or that belongs to another question, is none.
    score, views : int64 arrays
        As of the day of the dump, so not for anything that predicts the past; views −1 if unknown.
    """

    id: Int64Array
    created_ms: Int64Array
    asker: Int64Array
    accepted: Int64Array
    score: Int64Array
    views: Int64Array

    def __len__(self) -> int:
        return len(self.id)


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers by date; those whose question the dump does not hold are left out.

    Attributes
    ----------
    id, created_ms : int64 arrays
        Id and time of answering.
    question : int64 array
        Position of the question in :class:`Questions`.
    owner : int64 array
        User id, −1 if unknown.
    score : int64 array
        As of the day of the dump.
    """

    id: Int64Array
    created_ms: Int64Array
    question: Int64Array
    owner: Int64Array
    score: Int64Array

    def __len__(self) -> int:
        return len(self.id)


@dataclass(frozen=True, eq=False)
class Bounties:
    """Bounties by date: offered for a question, and awarded to an answer.

    Attributes
    ----------
    question : int64 array
        Position in :class:`Questions` of the question a bounty was offered for.
    amount, created_ms, user : int64 arrays
        Points offered, when (dates of votes have no time of day), and by whom (−1 if unknown).
    awarded_answer, awarded_amount, awarded_ms : int64 arrays
        The awards, one entry each: position in :class:`Answers`, points, and when.
    """

    question: Int64Array
    amount: Int64Array
    created_ms: Int64Array
    user: Int64Array
    awarded_answer: Int64Array
    awarded_amount: Int64Array
    awarded_ms: Int64Array

    def __len__(self) -> int:
        return len(self.question)


@dataclass(frozen=True, eq=False)
class Users:
    """Users by id: registration date and reputation (−1 if the dump has none)."""

    id: Int64Array
    created_ms: Int64Array
    reputation: Int64Array

    def __len__(self) -> int:
        return len(self.id)


@dataclass(frozen=True, eq=False)
class QuestionTags:
    """Tags of questions in compressed rows.

    Attributes
    ----------
    names : list of str
        All tags, sorted.
    indptr : int64 array
        The tags of question q are ``tags[indptr[q] : indptr[q + 1]]``.
    tags : int64 array
        Positions in `names`, in the order in which the question lists them.
    """

    names: list[str]
    indptr: Int64Array
    tags: Int64Array

    def of(self, question: int) -> list[str]:
        """Return the names of the tags of the question at position `question`."""
        return [self.names[tag] for tag in self.tags[slice(*self.indptr[question : question + 2])]]

    def questions(self, tag: str) -> Int64Array:
        """Return the positions of the questions that have the tag."""
        code = self.names.index(tag) if tag in self.names else NOBODY
        rows = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))
        return np.unique(rows[self.tags == code])


@dataclass(frozen=True, eq=False)
class Links:
    """Links between questions, as positions: `kind` 1 is related, 3 a duplicate of `target`."""

    source: Int64Array
    target: Int64Array
    kind: Int64Array
    created_ms: Int64Array

    def __len__(self) -> int:
        return len(self.source)


class Site:
    """A site's store, opened for reading.

    Every accessor reads its columns once, when first used.

    Parameters
    ----------
    path : path
        Folder made by :func:`atpgraph_qa.data.ingest.ingest`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.manifest = read_manifest(path)

    def __repr__(self) -> str:
        rows = self.manifest["rows"]
        return f"Site({str(self.path)!r}, questions={rows['questions']}, answers={rows['answers']})"

    def read(self, table: str, columns: list[str]) -> Any:
        """Columns of a table as an Arrow table, of the version that was opened."""
        return read_table(self.path, self.manifest, table, columns)

    @cached_property
    def questions(self) -> Questions:
        """All questions."""
        table = self._posts
        answers = self.answers
        accepted = _lookup(answers.id, table["accepted_answer_id"])
        have = np.flatnonzero(accepted >= 0)
        accepted[have[answers.question[accepted[have]] != have]] = NOBODY
        return Questions(
            table["id"],
            table["created_ms"],
            table["owner_id"],
            accepted,
            table["score"],
            table["views"],
        )

    @cached_property
    def answers(self) -> Answers:
        """All answers to questions of the site."""
        columns = ["id", "created_ms", "question_id", "owner_id", "score"]
        table = _by_date(_arrays(self.read("answers", columns)))
        question = _lookup(self._posts["id"], table["question_id"])
        keep = question >= 0
        return Answers(
            table["id"][keep],
            table["created_ms"][keep],
            question[keep],
            table["owner_id"][keep],
            table["score"][keep],
        )

    @cached_property
    def bounties(self) -> Bounties:
        """All bounties; none where the dump had no votes."""
        columns = ["id", "post_id", "type", "created_ms", "amount", "user_id"]
        votes = self.read("votes", columns)
        _, compute = load_arrow()
        kinds = compute.field("type")
        table = _by_date(_arrays(votes.filter((kinds == BOUNTY_START) | (kinds == BOUNTY_CLOSE))))
        start = table["type"] == BOUNTY_START
        question = _lookup(self.questions.id, np.where(start, table["post_id"], NOBODY))
        answer = _lookup(self.answers.id, np.where(start, NOBODY, table["post_id"]))
        offered = (question >= 0) & (table["amount"] > 0)
        awarded = answer >= 0
        return Bounties(
            question[offered],
            table["amount"][offered],
            table["created_ms"][offered],
            table["user_id"][offered],
            answer[awarded],
            table["amount"][awarded],
            table["created_ms"][awarded],
        )

    @cached_property
    def users(self) -> Users:
        """All users the dump lists, by id."""
        table = _arrays(self.read("users", ["id", "created_ms", "reputation"]))
        order = np.argsort(table["id"])
        return Users(*(table[name][order] for name in ("id", "created_ms", "reputation")))

    @cached_property
    def tags(self) -> QuestionTags:
        """Tags of every question; empty where the dump has none."""
        lists = self._text("questions", "tags", self.questions.id)
        _, compute = load_arrow()
        flat = lists.flatten()
        counts = compute.fill_null(compute.list_value_length(lists), 0).to_numpy()
        names = sorted(flat.unique().to_pylist())
        arrow, _ = load_arrow()
        numbers = compute.index_in(flat, value_set=arrow.array(names, arrow.string()))
        indptr = np.zeros(len(lists) + 1, dtype=np.int64)
        np.cumsum(counts, out=indptr[1:])
        return QuestionTags(names, indptr, numbers.to_numpy().astype(np.int64))

    @cached_property
    def links(self) -> Links:
        """Links both of whose ends are questions of the site, by date."""
        columns = ["id", "created_ms", "post_id", "related_id", "type"]
        table = _by_date(_arrays(self.read("links", columns)))
        source = _lookup(self.questions.id, table["post_id"])
        target = _lookup(self.questions.id, table["related_id"])
        keep = (source >= 0) & (target >= 0)
        return Links(source[keep], target[keep], table["type"][keep], table["created_ms"][keep])

    def titles(self, positions: npt.ArrayLike | None = None) -> list[str]:
        """Return titles of questions, all or those at `positions`; "" where the dump has none."""
        return self._strings("questions", "title", self.questions.id, positions)

    def question_bodies(self, positions: npt.ArrayLike | None = None) -> list[str]:
        """Return bodies of questions as HTML, "" where the dump has none."""
        return self._strings("questions", "body", self.questions.id, positions)

    def answer_bodies(self, positions: npt.ArrayLike | None = None) -> list[str]:
        """Return bodies of answers as HTML, "" where the dump has none."""
        return self._strings("answers", "body", self.answers.id, positions)

    @cached_property
    def _posts(self) -> dict[str, Int64Array]:
        columns = ["id", "created_ms", "owner_id", "accepted_answer_id", "score", "views"]
        return _by_date(_arrays(self.read("questions", columns)))

    def _text(self, table: str, column: str, ids: Int64Array) -> Any:
        """A column in the order of `ids`."""
        rows = self.read(table, ["id", column])
        stored = rows["id"].to_numpy()
        order = np.argsort(stored)
        places = order[np.searchsorted(stored, ids, sorter=order)]
        return rows[column].combine_chunks().take(load_arrow()[0].array(places))

    def _strings(
        self, table: str, column: str, ids: Int64Array, positions: npt.ArrayLike | None
    ) -> list[str]:
        if positions is not None:
            wanted = np.asarray(positions, dtype=np.int64).reshape(-1)
            if len(wanted) and (wanted.min() < 0 or wanted.max() >= len(ids)):
                raise InputError(f"Positions of {table} go from 0 to {len(ids) - 1:,}.")
            ids = ids[wanted]
        texts: list[str] = []
        column_of = self._text(table, column, ids)
        for start in range(0, len(ids), _PART):
            part: Sequence[str | None] = column_of[start : start + _PART].to_pylist()
            texts += ["" if text is None else text for text in part]
        del column_of
        # Arrow would keep hundreds of megabytes for next time, and there is none.
        load_arrow()[0].default_memory_pool().release_unused()
        return texts


def _arrays(table: Any) -> dict[str, Int64Array]:
    """Integer columns as arrays, NULL as −1."""
    _, compute = load_arrow()
    return {
        name: compute.fill_null(table[name], NOBODY).to_numpy().astype(np.int64)
        for name in table.column_names
    }


def _by_date(table: dict[str, Int64Array]) -> dict[str, Int64Array]:
    order = np.lexsort((table["id"], table["created_ms"]))
    return {name: column[order] for name, column in table.items()}


def _lookup(ids: Int64Array, wanted: Int64Array) -> Int64Array:
    """Position of every wanted id in `ids` (any order, no repeats), −1 where it is not there.

    Examples
    --------
    >>> _lookup(np.array([7, 3, 5]), np.array([5, 7, 4])).tolist()
    [2, 0, -1]
    """
    if not len(ids):
        return np.full(len(wanted), NOBODY, dtype=np.int64)
    order = np.argsort(ids)
    place = np.searchsorted(ids, wanted, sorter=order)
    position = order[np.minimum(place, len(ids) - 1)]
    return np.where(ids[position] == wanted, position, NOBODY).astype(np.int64)
