"""An ingested site as arrays.

Posts are sorted by date, then id, because newer dumps are unsorted. Ids that are missing are −1:
the owner of a post whose author is unknown, the accepted answer of a question without one. All
times are int64 milliseconds since 1970-01-01 UTC.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from atpgraph.errors import InputError
from atpgraph.util.arrays import BoolArray, Int64Array
from atpgraph_qa.data.schema import BOUNTY_START
from atpgraph_qa.data.store import load_arrow, read_manifest, read_table

NOBODY = -1
DAY_MS = 24 * 3600 * 1000
MOST_DAYS = 1e6  # of a setting: more would not fit into milliseconds


@dataclass(frozen=True, eq=False)
class Rows:
    """Columns of equal length."""

    def __len__(self) -> int:
        return len(next(iter(vars(self).values())))

    def take(self, rows: slice | BoolArray | Int64Array) -> Self:
        """Return some of the rows; a slice copies nothing."""
        columns: list[Any] = [getattr(self, column.name)[rows] for column in fields(self)]
        return type(self)(*columns)


@dataclass(frozen=True, eq=False)
class Questions(Rows):
    """Questions by date.

    An accepted answer is ignored if it is missing from the dump or belongs to another question.
    """

    id: Int64Array
    created_ms: Int64Array
    asker: Int64Array  # user id, −1 if unknown
    accepted: Int64Array  # position in Answers of the accepted answer, −1 for none
    score: Int64Array  # as of the day of the dump, so not for anything that predicts the past
    views: Int64Array  # the same; −1 if unknown


@dataclass(frozen=True, eq=False)
class Answers(Rows):
    """Answers by date, without those whose question is missing from the dump."""

    id: Int64Array
    created_ms: Int64Array
    question: Int64Array  # position in Questions
    owner: Int64Array  # user id, −1 if unknown
    score: Int64Array  # as of the day of the dump


@dataclass(frozen=True, eq=False)
class Bounties(Rows):
    """Bounties offered for questions, by date."""

    question: Int64Array  # position in Questions
    amount: Int64Array  # points
    created_ms: Int64Array  # dates of votes have no time of day
    user: Int64Array  # who offered it, −1 if unknown


@dataclass(frozen=True, eq=False)
class Users(Rows):
    """Users by id: registration date and reputation (−1 if the dump has none)."""

    id: Int64Array
    created_ms: Int64Array
    reputation: Int64Array


@dataclass(frozen=True, eq=False)
class Links(Rows):
    """Links between questions, as positions: `kind` 1 is related, 3 a duplicate of `target`."""

    source: Int64Array
    target: Int64Array
    kind: Int64Array
    created_ms: Int64Array


@dataclass(frozen=True, eq=False)
class QuestionTags:
    """Tags of questions in compressed rows: q has ``tags[indptr[q] : indptr[q + 1]]``."""

    names: list[str]  # all tags, sorted
    indptr: Int64Array
    tags: Int64Array  # positions in `names`, in the order in which the question lists them

    def of(self, question: int) -> list[str]:
        """Return the names of the tags of the question at position `question`."""
        return [self.names[tag] for tag in self.tags[slice(*self.indptr[question : question + 2])]]

    def questions(self, tag: str) -> Int64Array:
        """Return the positions of the questions that have the tag."""
        code = self.names.index(tag) if tag in self.names else NOBODY
        rows = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))
        return np.unique(rows[self.tags == code])


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
        """Return columns of a table as an Arrow table, from the version that was opened."""
        return read_table(self.path, self.manifest, table, columns)

    @cached_property
    def questions(self) -> Questions:
        """All questions."""
        answers = self.answers
        id_, created_ms, asker, accepted_id, score, views = self._posts
        accepted = find_ids(answers.id, accepted_id)
        have = np.flatnonzero(accepted >= 0)
        accepted[have[answers.question[accepted[have]] != have]] = NOBODY
        return Questions(id_, created_ms, asker, accepted, score, views)

    @cached_property
    def answers(self) -> Answers:
        """All answers to questions of the site."""
        columns = self._by_date("answers", "question_id", "owner_id", "score")
        columns[2] = find_ids(self._posts[0], columns[2])
        return Answers(*columns).take(columns[2] >= 0)

    @cached_property
    def bounties(self) -> Bounties:
        """All bounties; none if the dump had no votes."""
        offered = load_arrow()[1].field("type") == BOUNTY_START
        _, created_ms, post, amount, user, _ = self._by_date(
            "votes", "post_id", "amount", "user_id", "type", where=offered
        )
        question = find_ids(self.questions.id, post)
        return Bounties(question, amount, created_ms, user).take((question >= 0) & (amount > 0))

    @cached_property
    def users(self) -> Users:
        """All users the dump lists, by id."""
        users = Users(*_arrays(self.read("users", ["id", "created_ms", "reputation"])))
        return users.take(np.argsort(users.id))

    @cached_property
    def tags(self) -> QuestionTags:
        """Tags of every question; empty if the dump has none."""
        arrow, compute = load_arrow()
        lists = self._text("questions", "tags", self.questions.id)
        flat = lists.flatten()
        names = sorted(flat.unique().to_pylist())
        numbers = compute.index_in(flat, value_set=arrow.array(names, arrow.string()))
        indptr = np.zeros(len(lists) + 1, dtype=np.int64)
        np.cumsum(compute.fill_null(compute.list_value_length(lists), 0), out=indptr[1:])
        return QuestionTags(names, indptr, numbers.to_numpy().astype(np.int64))

    @cached_property
    def links(self) -> Links:
        """Links between two questions of the site, by date."""
        _, created_ms, post, related, kind = self._by_date("links", "post_id", "related_id", "type")
        source, target = (find_ids(self.questions.id, ids) for ids in (post, related))
        return Links(source, target, kind, created_ms).take((source >= 0) & (target >= 0))

    def titles(self, positions: npt.ArrayLike | None = None) -> list[str]:
        """Return titles of questions, all or those at `positions`; "" for missing ones."""
        return self._strings("questions", "title", self.questions.id, positions)

    def question_bodies(self, positions: npt.ArrayLike | None = None) -> list[str]:
        """Return bodies of questions as HTML, "" for missing ones."""
        return self._strings("questions", "body", self.questions.id, positions)

    def answer_bodies(self, positions: npt.ArrayLike | None = None) -> list[str]:
        """Return bodies of answers as HTML, "" for missing ones."""
        return self._strings("answers", "body", self.answers.id, positions)

    @cached_property
    def _posts(self) -> list[Int64Array]:
        return self._by_date("questions", "owner_id", "accepted_answer_id", "score", "views")

    def _by_date(self, table: str, *columns: str, where: Any = None) -> list[Int64Array]:
        """Return ids, times and other columns of (some rows of) a table, by date."""
        rows = self.read(table, ["id", "created_ms", *columns])
        arrays = _arrays(rows if where is None else rows.filter(where))
        order = np.lexsort((arrays[0], arrays[1]))
        return [array[order] for array in arrays]

    def _text(self, table: str, column: str, ids: Int64Array) -> Any:
        """Return a column in the order of `ids`."""
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
        texts: list[str] = load_arrow()[1].fill_null(self._text(table, column, ids), "").to_pylist()
        # Arrow would keep hundreds of megabytes for next time, and there is none.
        load_arrow()[0].default_memory_pool().release_unused()
        return texts


def _arrays(table: Any) -> list[Int64Array]:
    """Return integer columns as arrays, NULL as −1."""
    _, compute = load_arrow()
    filled = (compute.fill_null(column, NOBODY) for column in table.columns)
    return [column.to_numpy().astype(np.int64) for column in filled]


def find_ids(ids: Int64Array, wanted: Int64Array) -> Int64Array:
    """Return the position of every wanted id in `ids` (any order, no repeats), −1 for no such id.

    Examples
    --------
    >>> find_ids(np.array([7, 3, 5]), np.array([5, 7, 4])).tolist()
    [2, 0, -1]
    """
    if not len(ids):
        return np.full(wanted.shape, NOBODY, dtype=np.int64)
    order = np.argsort(ids, kind="stable")  # fast where they ascend already
    place = np.searchsorted(ids, wanted, sorter=order)
    position = order[np.minimum(place, len(ids) - 1)]
    return np.where(ids[position] == wanted, position, NOBODY).astype(np.int64)
