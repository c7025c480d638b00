"""A simulated community with planted expertise and difficulty.

Planted
    Every user has an expertise in every topic, high in the one to three topics they care about.
    Every question has one topic and a difficulty on the same scale: a little above what its asker
    can answer, and rising with every question the asker has asked before.
Consequences
    People answer questions that are not far beyond them, the active and interested ones first. The
    better answer is accepted, more often than not: it is judged with noise, and some askers never
    accept. Bounties go to hard questions and rise with difficulty, with noise. How many answers a
    question gets is mostly luck, so counting answers tells little, as on real sites.

Times span several years; activity is heavy-tailed, as on real sites.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from atpgraph.errors import InputError
from atpgraph.util.arrays import BoolArray, Float64Array, Int64Array
from atpgraph.util.random import RandomState, generator
from atpgraph_qa.data.site import DAY_MS

START_MS = 1_325_376_000_000  # 2012-01-01
NONE = -1
BOUNTIES = np.array([50, 100, 150, 200, 250, 300, 400, 500], dtype=np.int64)
AUDIENCE = 24  # people who see a question
EAGERNESS = 2.2  # to answer, for each unit of expertise above the difficulty …
REACH = 1.0  # … up to this lead
QUALITY_NOISE, LOOKS_NOISE = 0.45, 0.2  # of an answer, and of how it looks to the asker
LEAST_LOOKS = -0.2  # what an answer must look like to be accepted
_ROOM, _HARD_ROOM, _FIRST = 0.9, 0.2, 0.8  # for how many answers there is room


@dataclass(frozen=True, eq=False)
class Community:
    """A simulated community: its events and its ground truth. Users and topics count from 0."""

    expertise: Float64Array  # planted, of every user in every topic
    interest: Float64Array  # how each user's attention is divided among the topics
    helpfulness: Float64Array  # how much of what they see each user answers
    registered_ms: Int64Array
    asker: Int64Array  # of every question, by time
    topic: Int64Array
    asked_ms: Int64Array
    difficulty: Float64Array  # planted, on the scale of `expertise`
    answer_question: Int64Array  # of every answer
    answerer: Int64Array
    answered_ms: Int64Array
    answer_score: Int64Array  # votes
    accepted: Int64Array  # answer accepted for every question, −1 for none
    bounty: Int64Array  # points offered for every question, 0 for none …
    bounty_ms: Int64Array  # … and when

    @property
    def n_users(self) -> int:
        """Number of users."""
        return len(self.expertise)

    @property
    def n_questions(self) -> int:
        """Number of questions."""
        return len(self.asker)

    @property
    def n_topics(self) -> int:
        """Number of topics."""
        return int(self.expertise.shape[1])


def simulate_community(
    n_users: int = 1000,
    n_questions: int = 5000,
    *,
    n_topics: int = 8,
    years: float = 6.0,
    bounty_share: float = 0.08,
    random_state: RandomState = 0,
) -> Community:
    """Simulate a community.

    Parameters
    ----------
    n_users, n_questions, n_topics : int
        Size: at least two users, one question, one topic.
    years : float
        Time that the community covers.
    bounty_share : float
        Share of the questions with a bounty.
    random_state : int or generator
        Same state, same community.

    Examples
    --------
    >>> community = simulate_community(50, 200, random_state=0)
    >>> community.n_users, community.n_questions
    (50, 200)
    >>> bool((community.answerer != community.asker[community.answer_question]).all())
    True
    """
    if n_users < 2 or n_questions < 1 or n_topics < 1:
        raise InputError("A community needs at least two users, one question and one topic.")
    if not 0 < years <= 50:
        raise InputError(f"A community can cover up to 50 years, not {years}.")
    if not 0 <= bounty_share <= 1:
        raise InputError(
            f"The share of questions with a bounty must be 0 to 1, not {bounty_share}."
        )
    rng = generator(random_state)
    span = years * 365.25 * DAY_MS
    people = _people(rng, n_users, n_topics, span)
    asked = _ask(rng, n_questions, people, span)
    bounty = _offer(rng, asked.difficulty, bounty_share)
    bounty_at = asked.at + rng.uniform(2.0, 9.0, n_questions) * DAY_MS
    helpful = rng.lognormal(0.0, 1.0, n_users) * np.exp(0.4 * people.expertise.max(axis=1))
    question, answerer, answered, quality = _answer(rng, people, helpful, asked, bounty)
    accepted = _accept(rng, n_questions, question, quality)
    score = rng.poisson(np.exp(np.clip(0.6 + 0.7 * quality, -2.0, 3.5)))
    score -= rng.poisson(np.exp(np.clip(-1.2 - quality, -4.0, 1.5)))
    return Community(
        expertise=people.expertise,
        interest=people.interest,
        helpfulness=helpful,
        registered_ms=_moment(people.registered),
        asker=asked.asker,
        topic=asked.topic,
        asked_ms=_moment(asked.at),
        difficulty=asked.difficulty,
        answer_question=question,
        answerer=answerer,
        answered_ms=_moment(answered),
        answer_score=score.astype(np.int64),
        accepted=accepted,
        bounty=bounty,
        bounty_ms=_moment(bounty_at),
    )


class _People(NamedTuple):
    expertise: Float64Array
    interest: Float64Array
    registered: Float64Array  # milliseconds after the start


class _Asked(NamedTuple):
    asker: Int64Array
    topic: Int64Array
    at: Float64Array  # milliseconds after the start
    difficulty: Float64Array


def _moment(offset: Float64Array) -> Int64Array:
    return START_MS + offset.astype(np.int64)


def _people(rng: np.random.Generator, n: int, n_topics: int, span: float) -> _People:
    """Draw people who care about one to three topics and know these better than others."""
    cares = np.minimum(rng.integers(1, 4, size=n), n_topics)
    order = np.argsort(rng.random((n, n_topics)), axis=1)
    rank = np.argsort(order, axis=1)
    own = rank < cares[:, None]
    talent = rng.normal(0.0, 1.0, size=(n, 1))
    expertise = talent + rng.normal(0.0, 0.35, size=(n, n_topics)) + np.where(own, 0.6, -1.2)
    interest = np.where(own, 1.0 / (1.0 + rank), 0.03)
    interest *= rng.uniform(0.7, 1.3, size=interest.shape)
    interest /= interest.sum(axis=1, keepdims=True)
    registered = np.sort(rng.beta(0.9, 1.6, n)) * 0.9 * span
    rng.shuffle(registered)
    return _People(expertise, interest, registered)


def _ask(rng: np.random.Generator, n: int, people: _People, span: float) -> _Asked:
    """Draw questions in order of time, each a little harder than its asker can answer."""
    expertise, interest, registered = people
    n_users, n_topics = int(expertise.shape[0]), int(expertise.shape[1])
    eager = rng.lognormal(0.0, 1.0, n_users)
    asker = rng.choice(n_users, size=n, p=eager / eager.sum())
    # Curiosity fades: most questions of a user come early in their time.
    asked = registered[asker] + rng.beta(0.8, 1.3, n) * (span - registered[asker])
    order = np.argsort(asked, kind="stable")
    asker, asked = asker[order], asked[order]
    draw = rng.random(n)[:, None] > np.cumsum(interest[asker], axis=1)[:, : n_topics - 1]
    topic = np.count_nonzero(draw, axis=1).astype(np.int64)
    by_asker = np.argsort(asker, kind="stable")
    before = np.empty(n, dtype=np.int64)
    before[by_asker] = np.arange(n) - np.searchsorted(asker[by_asker], asker[by_asker])
    difficulty = expertise[asker, topic] + 0.35 + 0.20 * np.log1p(before) + rng.normal(0.0, 0.4, n)
    return _Asked(asker.astype(np.int64), topic, asked, difficulty)


def _offer(rng: np.random.Generator, difficulty: Float64Array, share: float) -> Int64Array:
    """Draw bounties, which are more frequent and larger for hard questions."""
    n = len(difficulty)
    wanted = difficulty + rng.normal(0.0, 1.2, n)
    offered = np.argsort(-wanted, kind="stable")[: round(share * n)]
    urge = difficulty + rng.normal(0.0, 0.35, n)
    bounty = np.zeros(n, dtype=np.int64)
    if len(offered):
        # Small bounties are common and large ones rare.
        steps = np.quantile(urge[offered], [0.42, 0.66, 0.78, 0.86, 0.91, 0.95, 0.98])
        bounty[offered] = BOUNTIES[np.searchsorted(steps, urge[offered])]
    return bounty


def _answer(
    rng: np.random.Generator,
    people: _People,
    helpful: Float64Array,
    asked: _Asked,
    bounty: Int64Array,
) -> tuple[Int64Array, Int64Array, Float64Array, Float64Array]:
    """Return question, answerer, time and quality of every answer, by time."""
    expertise, interest, registered = people
    asker, topic, asked_at, difficulty = asked
    n, n_users = len(asker), len(expertise)
    seen_by = np.empty((n, AUDIENCE), dtype=np.int64)
    for number in range(expertise.shape[1]):
        rows = np.flatnonzero(topic == number)
        odds = helpful * interest[:, number]
        seen_by[rows] = rng.choice(n_users, (len(rows), AUDIENCE), p=odds / odds.sum())
    skill = expertise[seen_by, topic[:, None]]
    # How many answer is luck, with a little more for hard questions and bounties; who answers
    # depends on how the question compares with what one knows.
    room = rng.poisson(_ROOM + 0.25 * (bounty > 0) + _HARD_ROOM * (difficulty > 0.0), n)
    room += rng.random(n) < _FIRST
    reach = np.minimum(skill - difficulty[:, None], REACH)
    order = np.argsort(-(EAGERNESS * reach + rng.gumbel(size=reach.shape)), axis=1, kind="stable")
    seen_by = np.take_along_axis(seen_by, order, axis=1)
    willing = (seen_by != asker[:, None]) & (registered[seen_by] < asked_at[:, None])
    willing &= ~_repeated(seen_by)
    willing &= np.cumsum(willing, axis=1) <= room[:, None]
    question, column = np.nonzero(willing)
    answerer = seen_by[question, column]
    lead = expertise[answerer, topic[question]] - difficulty[question]
    wait = rng.lognormal(1.0, 1.6, len(question)) * np.exp(-0.25 * lead) * DAY_MS / 12
    answered = asked_at[question] + wait
    order = np.argsort(answered, kind="stable")
    quality = lead + rng.normal(0.0, QUALITY_NOISE, len(question))
    return question[order].astype(np.int64), answerer[order], answered[order], quality[order]


def mean_room(difficulty: float) -> float:
    """Return how many people answer a question on average, bounties aside."""
    return _ROOM + _HARD_ROOM * (difficulty > 0.0) + _FIRST


def _repeated(people: Int64Array) -> BoolArray:
    """Return True where a person also occurs further left in the row."""
    place = np.argsort(people, axis=1, kind="stable")
    ordered = np.take_along_axis(people, place, axis=1)
    again = np.zeros(people.shape, dtype=np.bool_)
    again[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
    result = np.empty_like(again)
    np.put_along_axis(result, place, again, axis=1)
    return result


def _accept(
    rng: np.random.Generator, n: int, question: Int64Array, quality: Float64Array
) -> Int64Array:
    """Return the answer that looks best to the asker, if it is good enough and the asker cares."""
    accepted = np.full(n, NONE, dtype=np.int64)
    looks = quality + rng.normal(0.0, LOOKS_NOISE, len(quality))
    order = np.argsort(looks, kind="stable")
    accepted[question[order]] = order  # the best one is written last
    cares = rng.random(n) < 0.78
    best = np.where(accepted >= 0, looks[accepted] if len(looks) else 0.0, -np.inf)
    accepted[~cares | (best < LEAST_LOOKS)] = NONE
    return accepted
