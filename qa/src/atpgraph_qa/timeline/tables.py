"""The tables of a timeline: frozen, in the order in which their rows became known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Self

from atpgraph.util.arrays import BoolArray, Int64Array


@dataclass(frozen=True, eq=False)
class Table:
    """Columns of equal length."""

    def __len__(self) -> int:
        return len(next(iter(vars(self).values())))

    def take(self, rows: slice | BoolArray | Int64Array) -> Self:
        """Some of the rows; a slice copies nothing."""
        columns: list[Any] = [getattr(self, column.name)[rows] for column in fields(self)]
        return type(self)(*columns)


@dataclass(frozen=True, eq=False)
class QuestionTable(Table):
    """Questions by date.

    Attributes
    ----------
    id, asked_ms : int64 arrays
    asker : int64 array
        User code, −1 if unknown or hidden.
    present : boolean array
        False for hidden questions: nobody may see them or anything that belongs to them.
    """

    id: Int64Array
    asked_ms: Int64Array
    asker: Int64Array
    present: BoolArray


@dataclass(frozen=True, eq=False)
class AnswerTable(Table):
    """Answers by the moment from which they can be seen.

    Attributes
    ----------
    given_ms : int64 array
    question : int64 array
        Position in :class:`QuestionTable`.
    owner : int64 array
        User code, −1 if unknown or hidden.
    id : int64 array
        Id on the site, −1 for an answer that stands for what a newcomer declares.
    """

    given_ms: Int64Array
    question: Int64Array
    owner: Int64Array
    id: Int64Array


@dataclass(frozen=True, eq=False)
class NewAnswers(Table):
    """Answers to add to a timeline.

    Attributes
    ----------
    user : int64 array
        User id.
    question : int64 array
        Position in :class:`QuestionTable`.
    given_ms : int64 array
    accepted : boolean array
    """

    user: Int64Array
    question: Int64Array
    given_ms: Int64Array
    accepted: BoolArray


@dataclass(frozen=True, eq=False)
class AcceptanceTable(Table):
    """Accepted answers (positions in :class:`AnswerTable`), at most one for each question."""

    known_ms: Int64Array
    answer: Int64Array


@dataclass(frozen=True, eq=False)
class VoteTable(Table):
    """Votes for answers (positions in :class:`AnswerTable`), +1 or −1 each."""

    known_ms: Int64Array
    answer: Int64Array
    value: Int64Array


@dataclass(frozen=True, eq=False)
class TextTable(Table):
    """Titles and bodies of questions; bodies are HTML, and empty in a trained model."""

    titles: Sequence[str]
    bodies: Sequence[str]
