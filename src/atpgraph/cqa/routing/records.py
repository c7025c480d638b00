"""Every event of a site, in the order in which events became known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from atpgraph.cqa.routing.dates import FOREVER, acceptances, ballots, dated_votes, in_order
from atpgraph.cqa.routing.text import Corpus
from atpgraph.cqa.site import NOBODY, Answers, Int64, Questions, Site

if TYPE_CHECKING:
    from atpgraph.cqa.routing.history import History, Question

_SPARSE_IDS = 64


@dataclass(frozen=True, eq=False)
class Records:
    """Every event of a site; users are codes, positions in `users`.

    Attributes
    ----------
    users : int64 array
        Ids of everybody who asked or answered, ascending.
    questions, answers : Questions, Answers
        As in the site, by date; askers and owners are user ids.
    asker, owner : int64 arrays
        Codes of askers and owners, −1 if unknown.
    accepted_ms, accepted_answer : int64 arrays
        Acceptances by the moment from which they are known.
    vote_ms, vote_answer, vote_value : int64 arrays
        Votes for answers (+1 and −1) in the same way.
    present : boolean array
        False for questions that nobody may see, with all that belongs to them.
    """

    users: Int64
    questions: Questions
    answers: Answers
    asker: Int64
    owner: Int64
    accepted_ms: Int64
    accepted_answer: Int64
    vote_ms: Int64
    vote_answer: Int64
    vote_value: Int64
    corpus: Corpus
    tag_indptr: Int64
    tag_codes: Int64
    tag_names: list[str]
    titles: Sequence[str]
    bodies: Sequence[str]
    present: npt.NDArray[np.bool_]
    cache: dict[Any, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, site: Site) -> Records:
        """Collect the events of a site."""
        questions, answers = in_order(site.questions, site.answers)
        people = np.unique(np.concatenate([questions.asker, answers.owner]))
        people = people[people >= 0]
        votes = dated_votes(site, answers)
        accepted_ms, accepted_answer = acceptances(questions, answers, votes)
        vote_ms, vote_answer, vote_value = ballots(votes)
        titles, bodies = site.titles(), site.question_bodies()
        tags = site.tags
        names = [tags.of(q) for q in range(len(questions))]
        return cls(
            users=people,
            questions=questions,
            answers=answers,
            asker=codes_of(people, questions.asker),
            owner=codes_of(people, answers.owner),
            accepted_ms=accepted_ms,
            accepted_answer=accepted_answer,
            vote_ms=vote_ms,
            vote_answer=vote_answer,
            vote_value=vote_value,
            corpus=Corpus.of(titles, bodies, names),
            tag_indptr=tags.indptr,
            tag_codes=tags.tags,
            tag_names=tags.names,
            titles=titles,
            bodies=bodies,
            present=np.ones(len(questions), dtype=np.bool_),
        )

    def without(self, positions: npt.ArrayLike) -> Records:
        """The same events, but for these questions and whatever belongs to them."""
        present = self.present.copy()
        present[np.asarray(positions, dtype=np.int64)] = False
        seen = present[self.answers.question]
        owner = np.where(seen, self.owner, NOBODY)
        taken, voted = seen[self.accepted_answer], seen[self.vote_answer]
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return Records(
            **{
                **fields,
                "owner": owner,
                "asker": np.where(present, self.asker, NOBODY),
                "accepted_ms": self.accepted_ms[taken],
                "accepted_answer": self.accepted_answer[taken],
                "vote_ms": self.vote_ms[voted],
                "vote_answer": self.vote_answer[voted],
                "vote_value": self.vote_value[voted],
                "present": present,
                "cache": {},
            }
        )

    def until(self, moment_ms: int) -> Records:
        """The site as a dump made at that moment would show it; for tuning before a split."""
        n = int(np.searchsorted(self.questions.created_ms, moment_ms))
        m = int(np.searchsorted(self.answers.created_ms, moment_ms))
        taken = int(np.searchsorted(self.accepted_ms, moment_ms, side="right"))
        voted = int(np.searchsorted(self.vote_ms, moment_ms, side="right"))
        best = np.full(n, NOBODY, dtype=np.int64)
        best[self.answers.question[self.accepted_answer[:taken]]] = self.accepted_answer[:taken]
        fields = {name: getattr(self, name) for name in self.__dataclass_fields__}
        asked = {name: getattr(self.questions, name)[:n] for name in Questions.__dataclass_fields__}
        given = {name: getattr(self.answers, name)[:m] for name in Answers.__dataclass_fields__}
        return Records(
            **{
                **fields,
                "questions": Questions(**{**asked, "accepted": best}),
                "answers": Answers(**given),
                "asker": self.asker[:n],
                "owner": self.owner[:m],
                "accepted_ms": self.accepted_ms[:taken],
                "accepted_answer": self.accepted_answer[:taken],
                "vote_ms": self.vote_ms[:voted],
                "vote_answer": self.vote_answer[:voted],
                "vote_value": self.vote_value[:voted],
                "corpus": self.corpus.first(n),
                "tag_indptr": self.tag_indptr[: n + 1],
                "tag_codes": self.tag_codes[: int(self.tag_indptr[n])],
                "present": self.present[:n],
                "cache": {},
            }
        )

    @cached_property
    def by_question(self) -> tuple[Int64, Int64]:
        """Answers of every question, in compressed rows."""
        return _rows(self.answers.question, np.arange(len(self.answers)), len(self.questions))

    @cached_property
    def by_owner(self) -> tuple[Int64, Int64]:
        """Answers of every user code, in compressed rows, by date."""
        known = np.flatnonzero(self.owner >= 0)
        return _rows(self.owner[known], known, len(self.users))

    @cached_property
    def by_tag(self) -> tuple[Int64, Int64]:
        """Questions of every tag code, in compressed rows, by date."""
        question = np.repeat(np.arange(len(self.tag_indptr) - 1), np.diff(self.tag_indptr))
        return _rows(self.tag_codes, question, len(self.tag_names))

    @cached_property
    def code_table(self) -> Int64 | None:
        """Code of every id from 0, with −1 at the end; None if ids are too far apart."""
        if not len(self.users) or self.users[-1] > _SPARSE_IDS * len(self.users) + 1_000_000:
            return None
        table = np.full(int(self.users[-1]) + 2, NOBODY, dtype=np.int64)
        table[self.users] = np.arange(len(self.users))
        return table

    @cached_property
    def tag_index(self) -> dict[str, int]:
        """Codes of tags by name."""
        return {name: code for code, name in enumerate(self.tag_names)}

    def at(self, moment_ms: int | None = None) -> History:
        """What was known just before a moment; everything if there is none."""
        from atpgraph.cqa.routing.history import History

        return History(self, FOREVER if moment_ms is None else int(moment_ms))

    def question(self, position: int, history: History | None = None) -> Question:
        """A question of the site, with what was known when it was asked."""
        asked = int(self.questions.created_ms[position])
        tags = self.tag_codes[slice(*self.tag_indptr[position : position + 2])]
        from atpgraph.cqa.routing.history import Question

        return Question(
            history if history is not None else self.at(asked),
            asked,
            int(self.questions.asker[position]),
            self.titles[position],
            self.bodies[position],
            tuple(self.tag_names[tag] for tag in tags),
            int(self.questions.id[position]),
        )


def _rows(keys: Int64, values: Int64, n: int) -> tuple[Int64, Int64]:
    """Values by key, in compressed rows; their order stays."""
    indptr = np.zeros(n + 1, dtype=np.int64)
    np.cumsum(np.bincount(keys, minlength=n), out=indptr[1:])
    return indptr, values[np.argsort(keys, kind="stable")]


def codes_of(people: Int64, ids: Int64) -> Int64:
    if not len(people):
        return np.full(ids.shape, NOBODY, dtype=np.int64)
    place = np.minimum(np.searchsorted(people, ids), len(people) - 1)
    return np.where(people[place] == ids, place, NOBODY).astype(np.int64)
