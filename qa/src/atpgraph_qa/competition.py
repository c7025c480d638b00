"""The competition graph of a site, with edges from the weaker to the stronger.

A question beats its asker; the owner of the accepted answer beats the question, the asker and
everybody else who answered. No edge joins a question and an answerer who was not accepted. Nodes
are labeled ``"user:42"`` and ``"question:17"``. Posts without a known owner give no edge.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from atpgraph.errors import BudgetError, InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.util.arrays import BoolArray, Float64Array, Int64Array
from atpgraph_qa.data.site import DAY_MS, NOBODY, Answers, Questions, QuestionTags, Site, find_ids

Ega = Literal["none", "consecutive", "all-pairs"]
MOST_EGA_EDGES = 200_000_000


@dataclass(frozen=True, eq=False)
class Posts:
    """The posts of a site, or those of them that were known at a moment."""

    questions: Questions
    answers: Answers
    tags: QuestionTags


@dataclass(frozen=True)
class EdgeTypes:
    """The types of edges that a competition graph has."""

    asker_question: bool = True  # also for questions without an accepted answer
    question_best: bool = True  # question → owner of the accepted answer
    asker_best: bool = True  # asker → owner of the accepted answer
    others_best: bool = True  # everybody else who answered → owner of the accepted answer


@dataclass(frozen=True, eq=False)
class Competition:
    """A competition graph and the posts and people behind its nodes."""

    graph: DiGraph  # labels are "user:<id>" and "question:<id>"
    ids: Int64Array  # of the user or question of every node
    is_question: BoolArray
    counts: dict[str, int]  # edges before repeats are merged, by type

    @classmethod
    def from_graph(cls, graph: DiGraph) -> Self:
        """Return a competition graph that was read from a file, using the labels of its nodes."""
        kinds, _, numbers = np.array(
            [str(label).partition(":") for label in graph.labels.tolist()] or np.zeros((0, 3)),
            dtype=object,
        ).T
        is_question = (kinds == "question").astype(np.bool_)
        try:
            if not np.all(is_question | (kinds == "user")):
                raise ValueError
            ids = numbers.astype(np.int64)
        except ValueError:
            raise InputError(
                "This is not a competition graph: its nodes are not named like user:42 and "
                "question:17. Make one with 'atp qa train'."
            ) from None
        return cls(graph, ids, is_question, {})

    def question_nodes(self, ids: npt.ArrayLike) -> Int64Array:
        """Return the nodes of questions by id, −1 for questions that are not in the graph."""
        return self._nodes(ids, self.is_question)

    def user_nodes(self, ids: npt.ArrayLike) -> Int64Array:
        """Return the nodes of users by id, −1 for users that are not in the graph."""
        return self._nodes(ids, ~self.is_question)

    def _nodes(self, ids: npt.ArrayLike, kind: BoolArray) -> Int64Array:
        nodes = np.flatnonzero(kind)
        place = find_ids(self.ids[nodes], np.asarray(ids, dtype=np.int64))
        return np.append(nodes, NOBODY)[place].astype(np.int64)


def competition_graph(
    site: Site | Posts,
    *,
    ega: Ega = "none",
    tau_days: float = 30.0,
    edges: EdgeTypes | None = None,
    exclude: npt.ArrayLike = (),
) -> Competition:
    """Build the competition graph of a site.

    Parameters
    ----------
    site : Site or Posts
        The site, or its posts as they were known at a moment.
    ega : {"none", "consecutive", "all-pairs"}
        Expertise gain: people ask harder questions as they learn, so an earlier question of an
        asker points to a later one: to the asker's next question, or to all that are asked at
        least `tau_days` later.
    tau_days : float
        The minimum distance for ``"all-pairs"``.
    edges : EdgeTypes, optional
        Types to include, all by default.
    exclude : ids of questions
        Test questions: no edge of any type comes from them.

    Returns
    -------
    Competition
    """
    if ega not in ("none", "consecutive", "all-pairs"):
        raise InputError(f"ega must be none, consecutive or all-pairs, not {ega!r}.")
    if not 0 <= tau_days <= 1e6:
        raise InputError(f"tau must be a number of days from 0 to a million, not {tau_days}.")
    questions = site.questions
    keep = ~np.isin(questions.id, np.asarray(list(np.atleast_1d(exclude)), dtype=np.int64))
    people = np.unique(np.concatenate([questions.asker, site.answers.owner]))
    people = people[people >= 0]
    parts = _edges(site, keep, people)
    chosen = edges or EdgeTypes()
    parts = {name: part for name, part in parts.items() if getattr(chosen, name)}
    if ega != "none":
        rows = np.flatnonzero(keep & (questions.asker >= 0))
        early, late = _gain(questions.asker[rows], questions.created_ms[rows], ega, tau_days)
        parts["ega"] = rows[early] + len(people), rows[late] + len(people)

    nothing = np.zeros(0, dtype=np.int64)
    sources = np.concatenate([nothing, *(source for source, _ in parts.values())])
    targets = np.concatenate([nothing, *(target for _, target in parts.values())])
    nodes, codes = np.unique(np.concatenate([sources, targets]), return_inverse=True)
    is_question = nodes >= len(people)
    ids = np.concatenate([people, questions.id])[nodes]
    kinds = np.where(is_question, "question", "user").tolist()
    labels = np.empty(len(nodes), dtype=object)
    labels[:] = [f"{kind}:{number}" for kind, number in zip(kinds, ids.tolist(), strict=True)]
    graph = DiGraph.from_codes(codes[: len(sources)], codes[len(sources) :], labels)
    counts = {name: len(source) for name, (source, _) in parts.items()}
    return Competition(graph, ids, is_question, counts)


def at_nodes(values: Any, nodes: Int64Array, otherwise: float = np.nan) -> Float64Array:
    """Return the values, or rows, of nodes given by index, and `otherwise` for −1."""
    result = np.full((len(nodes), *values.shape[1:]), otherwise)
    result[nodes >= 0] = values[nodes[nodes >= 0]]
    return result


def _edges(
    site: Site | Posts, keep: BoolArray, people: Int64Array
) -> dict[str, tuple[Int64Array, Int64Array]]:
    """Return sources and targets by type, as codes: places in `people`, then questions."""
    questions, answers = site.questions, site.answers
    best = np.full(len(questions), -1, dtype=np.int64)
    resolved = keep & (questions.accepted >= 0)
    best[resolved] = answers.owner[questions.accepted[resolved]]
    asked, won = np.flatnonzero(keep & (questions.asker >= 0)), np.flatnonzero(best >= 0)
    both = np.intersect1d(asked, won)
    # The accepted answerer may have answered twice: that is not a match against oneself.
    winner = best[answers.question]
    other = (winner >= 0) & (answers.owner >= 0) & (answers.owner != winner)

    def user(ids: Int64Array) -> Int64Array:
        return np.searchsorted(people, ids).astype(np.int64)

    return {
        "asker_question": (user(questions.asker[asked]), asked + len(people)),
        "question_best": (won + len(people), user(best[won])),
        "asker_best": (user(questions.asker[both]), user(best[both])),
        "others_best": (user(answers.owner[other]), user(winner[other])),
    }


def _gain(
    asker: Int64Array, created: Int64Array, ega: Ega, tau_days: float
) -> tuple[Int64Array, Int64Array]:
    """Return pairs (earlier, later) of questions of one asker; questions come by date."""
    order = np.argsort(asker, kind="stable")
    asker, created = asker[order], created[order]
    if ega == "consecutive":
        same = np.flatnonzero(asker[1:] == asker[:-1])
        return order[same], order[same + 1]
    # One search for all: questions by asker and time, and the moment from which a later one counts.
    wanted = created + max(1, round(tau_days * DAY_MS))
    moments = np.unique(np.concatenate([created, wanted]))
    person = np.unique(asker, return_inverse=True)[1] * len(moments)
    first = np.searchsorted(
        person + np.searchsorted(moments, created), person + np.searchsorted(moments, wanted)
    )
    count = np.searchsorted(asker, asker, side="right") - first
    total = int(count.sum())
    if total > MOST_EGA_EDGES:
        raise BudgetError(
            f"All pairs of questions {tau_days:g} days apart are {total:,} edges, more than "
            f"{MOST_EGA_EDGES:,}: use consecutive questions or a larger tau."
        )
    early = np.repeat(np.arange(len(asker)), count)
    late = np.arange(total) - np.repeat(np.cumsum(count) - count, count) + np.repeat(first, count)
    return order[early], order[late]


def site_statistics(site: Site, competition: Competition | None = None) -> dict[str, int]:
    """Count the posts, users and edges of a site, as the paper's second table does, and more.

    By default, the competition graph has no edges for expertise gain; ``first_ms``
    and ``last_ms`` are the times of the first and the last post.
    """
    competition = competition or competition_graph(site)
    questions, answers, graph = site.questions, site.answers, competition.graph
    times = np.concatenate([questions.created_ms, answers.created_ms])
    askers, answerers = (
        np.unique(people[people >= 0]) for people in (questions.asker, answers.owner)
    )
    n_questions = int(np.count_nonzero(competition.is_question))
    return {
        "questions": len(questions),
        "answers": len(answers),
        "users": len(site.users) or len(np.union1d(askers, answerers)),
        "questions_with_accepted_answer": int(np.count_nonzero(questions.accepted >= 0)),
        "askers": len(askers),
        "answerers": len(answerers),
        "bounties": len(site.bounties),
        "questions_with_bounty": len(np.unique(site.bounties.question)),
        "tags": len(site.tags.names),
        "first_ms": int(times.min()) if len(times) else 0,
        "last_ms": int(times.max()) if len(times) else 0,
        "nodes": graph.n_nodes,
        "edges": graph.n_edges,
        "self_loops": graph.n_self_loops,
        "user_nodes": graph.n_nodes - n_questions,
        "question_nodes": n_questions,
    }
