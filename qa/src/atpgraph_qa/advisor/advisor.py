"""Suggest who should answer a question: the object behind scripts, commands and the service."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from atpgraph.errors import InputError
from atpgraph.util.arrays import BoolArray, Float64Array, Int64Array
from atpgraph.util.checks import renamed_top
from atpgraph_qa.advisor.model_folder import ModelFolder, read_expertise, write_model
from atpgraph_qa.advisor.newcomers import MOST_ANSWERS, welcome
from atpgraph_qa.advisor.policies import AskLog, Dispatcher, Policy
from atpgraph_qa.advisor.reasons import Hierarchy
from atpgraph_qa.advisor.suggest import LEAST_CONFIDENCE, Ranker, Suggestions, suggest
from atpgraph_qa.data.site import Site
from atpgraph_qa.ranking.router import Router
from atpgraph_qa.ranking.training import TrainingPlan
from atpgraph_qa.text.choice import AUTO
from atpgraph_qa.timeline.events import Event, Forgotten, Newcomer
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.live import observe
from atpgraph_qa.timeline.query import Query, Question
from atpgraph_qa.timeline.records import Records

if TYPE_CHECKING:
    from atpgraph_qa.expertise import Expertise

_SAME_SITE = 0.5  # share of its questions that a later dump of a site has at least


def _warn_renamed(old: str, new: str) -> None:
    warnings.warn(
        f"Advisor.{old} is now Advisor.{new}; the old name will be removed in 0.4.",
        DeprecationWarning,
        stacklevel=3,
    )


@dataclass(frozen=True, eq=False)
class Advisor:
    """Suggest who should answer a question.

    An advisor never changes: :meth:`welcome` and :meth:`update` return a new one, and a service
    answers with the old one until then.

    Attributes
    ----------
    history : History
        The data of the site.
    router : Router
        Ranks people.
    newcomers : tuple of Newcomer
        Newcomers who were welcomed since the training.
    embedding : mapping
        Parameters of :meth:`~atpgraph_qa.Expertise.fit` for :attr:`expertise`.
    stored : bytes or None
        The file of :attr:`expertise`, read on first use; without it, expertise is computed then.
    hierarchy : Hierarchy
        Levels of people, for reasons.
    ignored : tuple
        Events of the last :meth:`observe` that changed nothing, each with the reason.

    Examples
    --------
    A small simulated community stands for a site:

    >>> import tempfile
    >>> from atpgraph_qa import Newcomer, Policy, Question
    >>> from atpgraph_qa import ingest, simulate_community, write_dump
    >>> folder = Path(tempfile.mkdtemp())
    >>> community = simulate_community(40, 120, n_topics=2, random_state=1)
    >>> summary = write_dump(community, folder / "dump", random_state=1)
    >>> report = ingest(folder / "dump", folder / "site")

    Train once and save; open where the questions come in:

    >>> Advisor.fit(Site(folder / "site"), text="bm25").save(folder / "model").name
    'model'
    >>> advisor = Advisor.load(folder / "model")
    >>> question = Question("Why do my tomato leaves turn yellow?", tags=["tomatoes"], asker=7)
    >>> first = advisor.ask(question).people[0]
    >>> print(first.user, first.reasons[1].text)
    27 18 answers tagged tomatoes, 14 accepted

    Not everybody may be asked, and newcomers should be:

    >>> rules = Policy(opted_out=frozenset({27}), newcomer_share=0.5)
    >>> opened = advisor.welcome([Newcomer(9001, tags=("tomatoes",))])
    >>> found = opened.ask(question, rules, k=2)
    >>> print(found.people[1].user, found.people[1].reasons[0].text)
    9001 newcomer, knows about tomatoes; nearest questions here: #158, #303, #318
    """

    history: History
    router: Router
    newcomers: tuple[Newcomer, ...] = ()
    embedding: Mapping[str, Any] = field(default_factory=dict)
    stored: bytes | None = field(default=None, repr=False)
    hierarchy: Hierarchy = field(default_factory=Hierarchy, repr=False)
    ignored: tuple[tuple[Event, str], ...] = field(default=(), repr=False)

    @classmethod
    def fit(
        cls,
        site: Site,
        *,
        text: str | os.PathLike[str] = AUTO,
        plan: TrainingPlan | None = None,
        random_state: int = 0,
        **embedding: Any,
    ) -> Self:
        """Return an advisor that has learned from everything that happened on a site.

        Parameters
        ----------
        site : Site
        text : str or path
            How questions are compared: by words (``bm25``), by the text model ``static`` or
            ``dense``, or by one in a folder with an ONNX file and ``tokenizer.json``; ``auto``
            chooses.
        plan : TrainingPlan, optional
            Which past questions the router learns from.
        random_state : int
            Seed; the same seed gives the same suggestions.
        **embedding
            For :attr:`expertise`: parameters of :meth:`~atpgraph_qa.Expertise.fit`.
        """
        history = History.latest(Records.of(site, text))
        router = Router("all", random_state, plan=plan).fit(history)
        history.records.memo.clear()  # results about the past are no longer needed
        return cls(
            history,
            router,
            embedding={"random_state": random_state, **embedding},
            hierarchy=Hierarchy.of(history, random_state),
        )

    @classmethod
    def train(cls, site: Site, **settings: Any) -> Self:
        """Call :meth:`fit`; this old name will be removed in 0.4."""
        _warn_renamed("train", "fit")
        return cls.fit(site, **settings)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Call :meth:`load`; this old name will be removed in 0.4."""
        _warn_renamed("open", "load")
        return cls.load(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Return the model that :meth:`save` or ``atp qa train`` wrote."""
        folder = ModelFolder.open(path)
        return cls(
            folder.history(),
            folder.router(),
            folder.newcomers(),
            stored=folder.stored_expertise(),
            hierarchy=folder.hierarchy(),
        )

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the model folder, whole or not at all, and return its path."""
        expertise = self.expertise if self.stored is None else self.stored
        return write_model(
            path, self.history, self.router, expertise, self.hierarchy, self.newcomers
        )

    def merged(self) -> Self:
        """Return the same advisor with all events since its training added to the indexes."""
        made = replace(self, history=History(self.history.records.settled(), self.history.now))
        made.warm_up()
        return made

    @cached_property
    def expertise(self) -> Expertise:
        """Difficulty of questions and expertise of people; computed on first use."""
        if self.stored:
            return read_expertise(self.stored)
        from atpgraph_qa.expertise import Expertise

        return Expertise.fit(History(self.history.records).posts(), **self.embedding)

    def experts(
        self, k: int = 20, tag: str | None = None, *, top: int | None = None
    ) -> tuple[Int64Array, Float64Array]:
        """Return the k users with the most expertise, overall or in a tag, and their scores."""
        k = renamed_top(k, top)
        if tag is None:
            return self.expertise.experts(k)
        return self.expertise.tag_experts(History(self.history.records).posts(), tag, k)

    def ask(
        self,
        question: Question,
        policy: Policy | Dispatcher | None = None,
        *,
        log: AskLog | None = None,
        k: int = 5,
        least_confidence: float = LEAST_CONFIDENCE,
        ranker: Ranker | None = None,
        top: int | None = None,
    ) -> Suggestions:
        """Suggest who should answer a question, with reasons.

        Parameters
        ----------
        question : Question
        policy : Policy or Dispatcher, optional
            Rules for whom to ask; a dispatcher has a log of its own.
        log : AskLog, optional
            Who was asked before, for caps and spread; the people suggested are added to it.
        k : int
            How many people; its old name `top` will be removed in 0.4.
        least_confidence : float
            If nobody reaches this confidence, the answer says so.
        ranker : Ranker, optional
            The object that computes scores and reasons; see
            :class:`~atpgraph_qa.advisor.readers.Readers`.
        """
        history = self.open_history
        query = Query.now(history, question)
        if query.asked_ms < history.last_ms:
            raise InputError(
                f"The question is asked at {question.at}, before the last post of the site; it "
                "must be after."
            )
        dispatcher = policy if isinstance(policy, Dispatcher) else Dispatcher(policy, log)
        return suggest(
            ranker or self.ranker,
            query,
            dispatcher,
            top=renamed_top(k, top),
            least_confidence=least_confidence,
        )

    def warm_up(self) -> None:
        """Compute the data that all questions share, so that the first one need not wait for it."""
        last = self.history.n_questions - 1
        again = Query.again(self.history.records, last).question if last >= 0 else Question()
        self.ask(again, k=1)

    @property
    def week_ms(self) -> int:
        """The start of the week of the statistics in use; call :meth:`warm_up` when it changes."""
        return self.history.week_ms

    def welcome(self, people: Iterable[Newcomer]) -> Self:
        """Return an advisor that also suggests these newcomers.

        A person who was welcomed before is placed again.
        """
        arriving = tuple(people)
        again = {person.user for person in arriving}
        staying = tuple(person for person in self.newcomers if person.user not in again)
        made = replace(self, newcomers=staying + arriving)
        made.open_history  # noqa: B018 - refuse here, not at the first question
        return made

    def observe(self, events: Iterable[Event]) -> Self:
        """Return an advisor with these events added; this one does not change.

        An event takes as long as copying a few numbers per person. Weights, levels and expertise
        stay as they were trained; only after somebody was forgotten is expertise recomputed, on its
        next use. Ask about a new question before its :class:`~atpgraph_qa.Asked` is observed, or
        its own words count as a match.

        Parameters
        ----------
        events : iterable of Asked, Answered, Accepted, Voted and Forgotten
            In any order within a call; an event dated before the last known post counts from the
            time of that post. Events that change nothing, such as one that was observed before, are
            in :attr:`ignored` of the advisor returned. All rules are in
            :mod:`atpgraph_qa.timeline.live`.

        Examples
        --------
        See :class:`Advisor` for how one is trained.

        >>> from atpgraph_qa import Answered, Asked
        >>> Asked(9001, "Sow beans now?", tags=["beans"], asker=7, at_ms=1_700_000_000_000).tags
        ('beans',)
        """
        batch = list(events)
        seen = observe(self.history, batch)
        gone = {event.user for event in batch if isinstance(event, Forgotten)}
        made = replace(
            self,
            history=seen.history,
            newcomers=tuple(person for person in self.newcomers if person.user not in gone),
            hierarchy=self.hierarchy.without(gone),
            stored=b"" if gone else self.stored,
            ignored=seen.ignored,
        )
        if made.newcomers and "open_history" in vars(self):
            vars(made)["open_history"] = observe(self.open_history, batch).history
        return made

    def later(self, moment_ms: int) -> Self:
        """Return an advisor for a later moment with no posts in between; see
        :meth:`History.later`."""
        made = replace(self, history=self.history.later(moment_ms))
        if made.newcomers and "open_history" in vars(self):
            vars(made)["open_history"] = self.open_history.later(moment_ms)
        return made

    def recalibrate(self, stated: Float64Array, happened: BoolArray) -> Self:
        """Return an advisor whose confidence is corrected by the outcomes of earlier suggestions.

        Parameters
        ----------
        stated : float64 array
            Confidence of suggestions that this advisor made.
        happened : boolean array
            Whether each of these people gave the accepted answer.
        """
        return replace(self, router=self.router.recalibrated(stated, happened))

    def unplaced(self) -> list[int]:
        """Return the newcomers who cannot be ranked, and so are never suggested."""
        arrivals = self.open_history.records.newcomers
        return [user for user, arrival in arrivals.items() if not len(arrival.questions)]

    def update(self, site: Site) -> Self:
        """Return an advisor with the same weights and the data of a later dump of its site."""
        records = Records.of(site, self.history.records.text_model)
        before = self.history.questions.id
        if len(before) and np.isin(before, records.questions.id).mean() < _SAME_SITE:
            raise InputError(
                f"{site.path} is not the site that the advisor was trained on: train a new one."
            )
        history = History.latest(records)
        codes = history.codes([person.user for person in self.newcomers])
        new = tuple(
            person
            for person, code in zip(self.newcomers, codes.tolist(), strict=True)
            if code < 0 or history.n_given[code] <= MOST_ANSWERS
        )
        hierarchy = Hierarchy.of(history, self.router.random_state)
        return replace(self, history=history, hierarchy=hierarchy, newcomers=new, stored=None)

    @property
    def ranker(self) -> Ranker:
        """Return the object that ranks in this process."""
        return Ranker(self.router, self.hierarchy)

    @cached_property
    def open_history(self) -> History:
        """Return the history including the newcomers."""
        return welcome(self.history, self.newcomers) if self.newcomers else self.history
