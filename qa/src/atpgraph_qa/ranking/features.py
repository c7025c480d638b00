"""Compute the features of people for a question: the same kernels for training and for serving.

:class:`Features` prepares what depends on the question alone. Then :func:`add_up` goes through the
people, compares the questions they answered or asked with the new one and sums up; :func:`weigh`
turns the sums into one number per feature and adds these up by weight. Training uses the numbers,
serving the weighted sums.

Counts and rates are those of the last Monday (:mod:`~atpgraph_qa.ranking.weekly`), which spares
most of the work when many questions are ranked; activity, similarity, tags and the asker's own
history are as of the question. Posts from before Monday are in an index and later posts follow in
order of time, so a sum does not depend on when and how posts came in.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from atpgraph.util.arrays import (
    AnyArray,
    Float32Array,
    Float64Array,
    Int8Array,
    Int32Array,
    Int64Array,
)
from atpgraph.util.jit import kernel, prefetch
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.ranking.names import AXES, FEW_MOST, FEW_OF, NAMES
from atpgraph_qa.ranking.weekly import (
    MOMENT,
    SIMILAR,
    STEADY,
    Posts,
    fade,
    is_timeless,
    moment_columns,
    weekly_stats,
)
from atpgraph_qa.timeline.meaning import UNIT, dot
from atpgraph_qa.timeline.query import Query
from atpgraph_qa.timeline.tables import Grouped

AT = {name: place for place, name in enumerate(NAMES)}
_STEADY_AT, _MOMENT_AT, _FEW_OF_AT, _FEW_AT = (
    tuple(AT[name] for name in names)
    for names in (STEADY, MOMENT, FEW_OF, [f"few{most}" for most in FEW_MOST])
)
_TEXT, _MEANING, _AXES, _TAGS, _ASKER, _HOUR, _DAYS_SINCE = (
    AT[name]
    for name in (
        "text_sum", "meaning_sum", AXES[0], "tag_sum", "helped_asker", "hour", "days_since",
    )
)  # fmt: skip
# Numbers of a person that enter as logarithms; those of MOMENT come after them.
(
    GIVEN, WORDS, WORDS_MEAN, WORDS_RECENT, WORDS_WON, NEAREST,
    CLOSE, CLOSE_MEAN, CLOSE_RECENT, CLOSE_WON, CLOSE_MONTH, CLOSE_DAYS, MONTH, ASKED,
    TAG, TAG_SHARE, TAG_RECENT, TAG_WON, TAG_SAME, N_LOGS,
) = range(20)  # fmt: skip
N_PLAIN = 5  # largest match and closeness, sum of closeness, largest to a question asked, answers
_LEAST, _LEAST_MEAN, _LEAST_SHARE, _CALM = map(np.float32, (0.02, 0.05, 0.5, 5.0))
_ZERO, _ONE = np.float32(0.0), np.float32(1.0)
_COUNT = len(NAMES)
_AHEAD = 32  # answers: similarities lie anywhere in memory and take that long to come
_ANSWERED, _ACCEPTED, _ASKED = range(3)  # kinds of recent posts
Sums = tuple[np.float32, ...]


class Comparison(NamedTuple):
    """The data by which a question is compared with earlier ones.

    `match` (BM25) and `share` (of tags) have a number for every earlier question; each is
    multiplied by a factor. `vectors` are those of all questions, `ordered` the same in the order of
    :attr:`Posts.order`; `vector` is empty if questions are compared by words only.
    """

    match: Float32Array
    share: Float32Array
    factors: Float32Array
    vectors: Int8Array
    ordered: Int8Array
    vector: Int8Array


class Recent(NamedTuple):
    """Posts since Monday, by kind; ``start[k] : start[k + 1]`` belong to the k-th person."""

    start: Int64Array
    kind: Int8Array
    question: Int64Array
    worth: Float32Array


class People(NamedTuple):
    """The data from which :func:`weigh` computes features, a row for each person.

    `rows` are those of `steady` and `profiles`, which are statistics of the week; `vector` is that
    of the question.
    """

    rows: Int64Array
    steady: Float32Array
    profiles: Float32Array
    vector: Int8Array
    logs: Float32Array
    plain: Float32Array
    hour: Float32Array
    direct: Float32Array
    given: Float64Array


class Features:
    """Features of people for one question."""

    def __init__(self, query: Query) -> None:
        history = query.history
        self.query, self._week = query, weekly_stats(history)
        week, meaning, vector = self._week, history.records.meaning, query.vector
        self._posts, known = week.posts, week.known
        self._since = np.ones(len(SIMILAR), dtype=np.float32)  # left of an answer's worth
        if is_timeless(history):
            worth = self._posts.worth.copy()
            away = np.abs(query.asked_ms - history.answers.given_ms[self._posts.answer])
            worth[:, :-1] = fade(-away / DAY_MS)
            self._posts = self._posts._replace(worth=worth)
        else:
            self._since[:] = np.exp2(-(query.asked_ms - known.now) / DAY_MS / SIMILAR)
        best_share = float(query.tag_shares.max(initial=0.0))
        scales = max(float(query.worth.sum()), 1e-9), max(best_share, 1e-9)
        none = np.zeros((0, 0), dtype=np.int8)
        self._comparison = Comparison(
            query.match,
            query.tag_shares,
            (1.0 / np.array(scales)).astype(np.float32),
            none if meaning is None else meaning.vectors,
            week.vectors,
            none[0:0].reshape(-1) if vector is None else vector,
        )
        self._uses = query.best_match > 0.0, vector is not None, best_share > 0.0

    def columns(self, codes: Int64Array) -> Float32Array:
        """Return an array of shape (features, people); the features of code −1 are 0."""
        result = np.zeros((len(codes), len(NAMES)), dtype=np.float32)
        self._rank(codes, np.zeros(len(NAMES)), result)
        return result.T

    def scores(self, codes: Int64Array, weight: Float64Array) -> Float64Array:
        """Return Σ weight · feature for every person; 0 for code −1.

        A person's sum does not depend on who else is ranked.
        """
        return self._rank(codes, weight, np.zeros((0, len(NAMES)), dtype=np.float32))

    def _rank(
        self, codes: Int64Array, weight: Float64Array, features: Float32Array
    ) -> Float64Array:
        """Write a row of features for every person, if there are rows; return the scores."""
        query, week, history = self.query, self._week, self.query.history
        place = np.full(history.n_users, -1, dtype=np.int32)
        places, known, rows = by_row(codes, week.row, place)
        logs = np.empty((len(known), N_LOGS + len(MOMENT)), dtype=np.float32)
        plain = np.empty((len(known), N_PLAIN), dtype=np.float32)
        recent, direct = self._recent(place, len(known)), self._direct(place, len(known))
        add_up(self._posts, recent, self._comparison, rows, self._since, logs, plain)
        logs[:, NEAREST] = direct[:, 0] + _LEAST
        logs[:, N_LOGS:], hour = moment_columns(query, week, known, rows, place)
        np.log(logs, out=logs)  # at once, which takes a fraction of the time
        scores = np.zeros(len(codes))
        people = People(
            rows, week.steady, week.profiles, self._comparison.vector, logs, plain, hour, direct,
            history.n_given[known],
        )  # fmt: skip
        weigh(people, self._uses, places, weight, features, scores)
        return scores

    def _recent(self, place: AnyArray, count: int) -> Recent:
        """Return the posts of people since Monday, and their answers accepted since then."""
        history, known = self.query.history, self._week.known
        answers = history.answers.take(slice(known.n_answers, None))
        won = history.records.acceptances.answer[known.n_acceptances : history.n_acceptances]
        won = won[won < known.n_answers]
        asker = history.questions.asker[known.n_questions :]
        parts = answers.owner, history.answers.owner[won], asker
        owner = np.concatenate(parts)
        key = np.where(owner >= 0, place[owner], -1) if len(place) else owner
        groups = Grouped.of(key, count)
        worth = np.zeros((len(owner), len(SIMILAR) + 1), dtype=np.float32)
        worth[: len(answers), :-1] = fade((answers.given_ms - known.now) / DAY_MS)
        worth[: len(answers), -1] = history.is_accepted[known.n_answers :]
        kind = np.repeat(np.arange(3, dtype=np.int8), [len(part) for part in parts])
        question = np.concatenate([
            answers.question,
            history.answers.question[won],
            np.arange(known.n_questions, history.n_questions),
        ])  # fmt: skip
        chosen = groups.positions
        return Recent(groups.indptr, kind[chosen], question[chosen], worth[chosen])

    def _direct(self, place: AnyArray, count: int) -> Float32Array:
        """Return features of people that depend on the question and its asker.

        The columns are the match of the nearest questions that they answered, whether they answered
        the asker before, and whether the asker accepted such an answer.
        """
        query, history = self.query, self.query.history
        result = np.zeros((count, 3), dtype=np.float32)
        owner, question = history.answers.owner, history.answers.question
        near = history.answers_to(query.nearest)
        near = near[owner[near] >= 0]
        near = near[place[owner[near]] >= 0]
        match = query.match[question[near]]
        result[:, 0] = np.bincount(place[owner[near]], match, count) / max(query.best_match, 1e-9)
        helped = history.answers_to(query.earlier_by_asker)
        helped = helped[owner[helped] >= 0]
        helped = helped[place[owner[helped]] >= 0]
        result[place[owner[helped]], 1] = 1.0
        result[place[owner[helped[history.is_accepted[helped]]]], 2] = 1.0
        return result


@kernel
def by_row(
    codes: Int64Array, row: Int64Array, place: Int32Array
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Order people by the rows of weekly statistics, their order in memory.

    Returns positions in `codes`, codes and rows, −1 left out; writes the place of every code.
    """
    places, people, rows = np.empty((3, np.count_nonzero(codes >= 0)), np.int64)
    first, other = np.full(len(row), -1, np.int32), np.empty(len(codes), np.int32)
    for k in range(len(codes)):
        if codes[k] >= 0:
            at = row[min(codes[k], len(row) - 1)]  # all who came since share the last row
            other[k], first[at] = first[at], k
    count = 0
    for at in range(len(row)):
        k = first[at]
        while k >= 0:
            places[count], people[count], rows[count] = k, codes[k], at
            place[codes[k]] = count
            k, count = other[k], count + 1
    return places, people, rows


@kernel
def add_up(
    posts: Posts, recent: Recent, comparison: Comparison, rows: Int64Array, since: Float32Array,
    logs: Float32Array, plain: Float32Array,
) -> None:  # fmt: skip
    """Write sums over what people posted; their rows ascend.

    Similarities are read from anywhere in memory, and a cache miss takes as long as ten answers, so
    they are prefetched. The sums of a person stay in registers.
    """
    # Unpacked here: Numba counts a reference at every use of an array in a tuple.
    start, _, answered, worth, asked_start, asked, order, extent = posts
    match, share, factors, vectors, ordered, vector = comparison
    recent_start, kind, recent_question, recent_worth = recent
    last, last_asked = len(answered) - 1, len(asked) - 1
    size = extent[rows[-1] + 1] if len(rows) else 0
    similar, known = np.empty((size, 4), np.float32), np.zeros(size, np.bool_)
    flat, found = similar.reshape(-1), np.empty((1, 4), np.float32)
    # A separate pass: mixed with the sums it takes twice as long.
    for at in range(len(rows)):
        # Nobody before has these questions. Compared here, memory is read in order.
        for number in range(extent[rows[at]], extent[rows[at] + 1]):
            ahead = np.int64(order[min(number + _AHEAD, len(order) - 1)])
            prefetch(match, ahead)
            prefetch(share, ahead)
            near = closeness(ordered, number, vector)
            put_similar(near, order[number], match, share, factors, number, similar)
            known[number] = True
    for at in range(len(rows)):
        row = rows[at]
        total: Sums = (
            _ZERO, _ZERO, _ZERO, _ZERO, _ZERO, _ZERO, _ZERO, _ZERO, _ZERO, _ZERO, _ZERO, _ZERO,
            _ZERO, _ZERO, _ZERO, _ZERO, _CALM,
        )  # fmt: skip
        asked_sum = asked_max = words_won = close_won = tag_won = _ZERO
        for k in range(start[row], start[row + 1]):
            prefetch(flat, np.int64(4) * answered[min(k + _AHEAD, last)])
            number = answered[k]
            if not known[number]:  # the first to have it is not ranked
                near = closeness(ordered, number, vector)
                put_similar(near, order[number], match, share, factors, number, similar)
                known[number] = True
            total = with_answer(total, similar, number, worth, k)
        for k in range(asked_start[row], asked_start[row + 1]):
            prefetch(flat, np.int64(4) * asked[min(k + _AHEAD, last_asked)])
            number = asked[k]
            if not known[number]:
                near = closeness(ordered, number, vector)
                put_similar(near, order[number], match, share, factors, number, similar)
                known[number] = True
            near = larger(similar[number, 0], _ZERO)
            asked_sum += near * near
            asked_max = larger(asked_max, near)
        for k in range(recent_start[at], recent_start[at + 1]):
            question = recent_question[k]
            near = closeness(vectors, question, vector)
            put_similar(near, question, match, share, factors, 0, found)
            near = larger(near, _ZERO)
            if kind[k] == _ANSWERED:
                total = with_answer(total, found, 0, recent_worth, k)
            elif kind[k] == _ACCEPTED:
                close_won += near * near
                words_won += found[0, 1]
                tag_won += found[0, 2]
            else:
                asked_sum += near * near
                asked_max = larger(asked_max, near)
        more = words_won, close_won, tag_won, asked_sum, asked_max
        put_sums(total, more, since, logs[at], plain[at])


@kernel
def larger(one: np.float32, other: np.float32) -> np.float32:
    """Return the larger of two numbers; Numba's own `max` is slower, since it checks for NaN."""
    return one if one > other else other


@kernel
def closeness(vectors: Int8Array, row: int, vector: Int8Array) -> np.float32:
    """Return the cosine of a row and the vector of the new question, 0 if it has no vector."""
    if not len(vector):
        return _ZERO
    return np.float32(dot(vectors, row, vector)) * np.float32(1.0 / UNIT**2)


@kernel
def put_similar(
    near: np.float32, question: int, match: Float32Array, share: Float32Array,
    factors: Float32Array, at: int, similar: Float32Array,
) -> None:  # fmt: skip
    """Write how similar a question is by meaning, words and tags, side by side.

    All three are on one cache line. Squares favor a few close questions
    over many that share a common word.
    """
    words = match[question] * factors[0]
    similar[at, 0] = near
    similar[at, 1] = words * words
    similar[at, 2] = share[question] * factors[1]


@kernel
def with_answer(
    total: Sums, similar: Float32Array, number: int, worth: Float32Array, row: int
) -> Sums:
    """Return a person's sums with one more answer."""
    (
        words, words_won, words_recent, words_max,
        close, close_won, close_recent, close_month, close_days, plain, close_max,
        month, tag, tag_won, tag_recent, tag_same, given,
    ) = total  # fmt: skip
    near, match, share = similar[number, 0], similar[number, 1], similar[number, 2]
    half, lately, days, won = worth[row, 0], worth[row, 1], worth[row, 2], worth[row, 3]
    positive = larger(near, _ZERO)
    square = positive * positive
    return (
        words + match, words_won + match * won, words_recent + match * half,
        larger(words_max, match),
        close + square, close_won + square * won, close_recent + square * half,
        close_month + square * lately, close_days + square * days,
        plain + near, larger(close_max, positive),
        month + lately, tag + share, tag_won + share * won, tag_recent + share * half,
        tag_same + share * share * share, given + _ONE,
    )  # fmt: skip


@kernel
def put_sums(
    total: Sums, more: Sums, since: Float32Array, logs: Float32Array, plain: Float32Array
) -> None:
    """Write a person's sums; those whose logarithm is taken get a constant added first."""
    (
        words, words_won, words_recent, plain[0],
        close, close_won, close_recent, close_month, close_days, plain[2], plain[1],
        month, tag, tag_won, tag_recent, tag_same, plain[4],
    ) = total  # fmt: skip
    accepted_words, accepted_close, accepted_tag, asked, plain[3] = more
    logs[GIVEN] = plain[4]
    logs[WORDS], logs[WORDS_MEAN] = words + _LEAST, words + _LEAST_MEAN
    logs[WORDS_RECENT] = words_recent * since[0] + _LEAST
    logs[WORDS_WON] = words_won + accepted_words + _LEAST
    logs[CLOSE], logs[CLOSE_MEAN] = close + _LEAST, close + _LEAST_MEAN
    logs[CLOSE_RECENT] = close_recent * since[0] + _LEAST
    logs[CLOSE_WON] = close_won + accepted_close + _LEAST
    logs[CLOSE_MONTH] = close_month * since[1] + _LEAST
    logs[CLOSE_DAYS] = close_days * since[2] + _LEAST
    logs[MONTH], logs[ASKED] = month * since[1] + _LEAST, asked + _LEAST
    logs[TAG], logs[TAG_SHARE] = tag + _LEAST, tag + _LEAST_SHARE
    logs[TAG_RECENT] = tag_recent * since[0] + _LEAST
    logs[TAG_WON] = tag_won + accepted_tag + _LEAST
    logs[TAG_SAME] = tag_same + _LEAST


@kernel
def weigh(
    people: People,
    uses: tuple[bool, bool, bool],
    places: Int64Array,
    weight: Float64Array,
    features: Float32Array,
    scores: Float64Array,
) -> None:
    """Write features of people, if there are rows for them, and their sums by weight."""
    rows, steady, profiles, vector, logs, plain, hour, direct, given = people
    x = np.zeros(_COUNT, np.float32)
    for at in range(len(rows)):
        row, log, mean = rows[at], logs[at], logs[at, GIVEN]
        if uses[0]:
            x[_TEXT], x[_TEXT + 1], x[_TEXT + 2] = log[WORDS], np.sqrt(plain[at, 0]), log[NEAREST]
            x[_TEXT + 3], x[_TEXT + 4] = log[WORDS_RECENT], log[WORDS_WON]
            x[_TEXT + 5] = log[WORDS_MEAN] - mean
        if uses[1]:
            x[_MEANING], x[_MEANING + 1] = log[CLOSE], plain[at, 1]
            x[_MEANING + 2], x[_MEANING + 3] = log[CLOSE_WON], log[CLOSE_RECENT]
            x[_MEANING + 4], x[_MEANING + 5] = log[CLOSE_MEAN] - mean, log[CLOSE_MONTH]
            x[_MEANING + 6] = log[CLOSE_DAYS]
            x[_MEANING + 7] = log[CLOSE_MONTH] - log[MONTH]
            x[_MEANING + 8] = plain[at, 2] / plain[at, 4]
            x[_MEANING + 9], x[_MEANING + 10] = log[ASKED], plain[at, 3]
            for k in range(profiles.shape[1]):
                x[_AXES + k] = profiles[row, k] * (np.float32(vector[k]) / np.float32(UNIT))
        if uses[2]:
            x[_TAGS], x[_TAGS + 1] = log[TAG], log[TAG_WON]
            x[_TAGS + 2] = log[TAG_SHARE] - mean
            x[_TAGS + 3], x[_TAGS + 4] = log[TAG_RECENT], log[TAG_SAME]
        for k in range(len(_STEADY_AT)):
            x[_STEADY_AT[k]] = steady[row, k]
        for k in range(len(_MOMENT_AT)):
            x[_MOMENT_AT[k]] = log[N_LOGS + k]
        x[_HOUR], x[_DAYS_SINCE] = hour[at], -x[_DAYS_SINCE]
        x[_ASKER], x[_ASKER + 1] = direct[at, 1], direct[at, 2]
        for k in range(len(_FEW_AT)):
            few = _ONE if given[at] <= FEW_MOST[k] else _ZERO
            x[_FEW_AT[k]] = few
            for j in range(len(_FEW_OF_AT)):
                x[_FEW_AT[k] + 1 + j] = few * x[_FEW_OF_AT[j]]
        # Four sums: one after the other, each would wait for the one before.
        a = b = c = d = 0.0
        for k in range(0, _COUNT - 3, 4):
            a += weight[k] * x[k]
            b += weight[k + 1] * x[k + 1]
            c += weight[k + 2] * x[k + 2]
            d += weight[k + 3] * x[k + 3]
        for k in range(_COUNT // 4 * 4, _COUNT):
            a += weight[k] * x[k]
        scores[places[at]] = (a + b) + (c + d)
        if len(features):
            features[places[at]] = x
