"""Compute the features of people for a question: one path for training and for serving.

:class:`Features` prepares what depends on the question alone (how similar every earlier question
is), then gives one column per feature for any people. Counts and rates are those of the last Monday
(:mod:`~atpgraph_qa.ranking.weekly`), which spares most of the work when many questions are ranked;
activity, similarity, tags and the asker's own history are of the moment.

What people posted before Monday is in an index, what they posted since is scanned. Both are added
up in the order of time, so a sum does not depend on when and how posts came in.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from atpgraph.util.arrays import AnyArray, Float32Array, Float64Array, Int32Array, Int64Array
from atpgraph.util.jit import kernel, prefetch
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.ranking.names import ASKER, AXES, FEW_MOST, FEW_OF, NAMES, TAGS
from atpgraph_qa.ranking.weekly import (
    SIMILAR,
    STEADY,
    Posts,
    fade,
    is_timeless,
    log,
    moment_columns,
    weekly_stats,
)
from atpgraph_qa.timeline.meaning import UNIT, dots
from atpgraph_qa.timeline.query import Query

AT = {name: place for place, name in enumerate(NAMES)}
_STEADY_AT, _AXES_AT = (np.array([AT[name] for name in names]) for names in (STEADY, AXES))
_LEAST, _LEAST_MEAN, _LEAST_SHARE, _CALM = 0.02, 0.05, 0.5, 5.0
_SCATTERED = 4  # times as long as questions in the order of memory take others
_AHEAD = 32  # answers: similarities lie anywhere in memory and take that long to come

# Sums over a person's answers (by words, by meaning, by tags) and over the questions they asked.
(
    WORDS, WORDS_WON, WORDS_RECENT, WORDS_MAX,
    CLOSE, CLOSE_WON, CLOSE_RECENT, CLOSE_MONTH, CLOSE_DAYS, CLOSE_PLAIN, CLOSE_MAX,
    MONTH, TAG, TAG_WON, TAG_RECENT, TAG_SAME, GIVEN,
    ASKED, ASKED_MAX,
) = range(19)  # fmt: skip
N_SUMS = ASKED_MAX + 1
Sums = tuple[np.float32, ...]  # those over answers, in that order


class Features:
    """Features of people for one question.

    Parameters
    ----------
    query : Query
    """

    def __init__(self, query: Query) -> None:
        history = query.history
        self.query, self._week = query, weekly_stats(history)
        posts, known = self._week.posts, self._week.known
        given = history.answers.given_ms
        self._since = np.ones(len(SIMILAR))  # what is left of an answer's worth since Monday
        if is_timeless(history):
            worth = posts.worth.copy()
            worth[:, :-1] = fade(-np.abs(query.asked_ms - given[posts.answer]) / DAY_MS)
            posts = posts._replace(worth=worth)
        else:
            self._since = np.exp2(-(query.asked_ms - known.now) / DAY_MS / SIMILAR)
        self._posts = posts
        self._late = history.answers.take(slice(known.n_answers, None))
        self._late_worth = np.empty((len(self._late), len(SIMILAR) + 1), dtype=np.float32)
        self._late_worth[:, :-1] = fade((self._late.given_ms - known.now) / DAY_MS)
        self._late_worth[:, -1] = history.is_accepted[known.n_answers :]
        won = history.records.acceptances.answer[known.n_acceptances : history.n_acceptances]
        self._late_won = won[won < known.n_answers]
        self._best_share = float(query.tag_shares.max(initial=0.0))
        self.has_words, self.has_tags = query.best_match > 0.0, self._best_share > 0.0
        self.has_meaning = query.vector is not None
        self._helpers = _helpers(query)

    def columns(self, codes: Int64Array) -> Float32Array:
        """Return an array of shape (features, people); −1 is nobody, whose features are 0."""
        result = np.zeros((len(NAMES), len(codes)), dtype=np.float32)
        order, rows = self._order(codes)
        for feature, column in self._each(codes[order], rows):
            result[feature, order] = column
        for features, block, scale in self._blocks():
            result[features[:, None], order] = (block[rows] * scale).T
        return result

    def scores(self, codes: Int64Array, weight: Float64Array) -> Float64Array:
        """Return Σ weight · feature for every person, −1 being nobody.

        The sum is in the same order whoever else is ranked.
        """
        scores, (order, rows) = np.zeros(len(codes)), self._order(codes)
        total = np.zeros(len(order))
        for feature, column in self._each(codes[order], rows):
            if weight[feature] != 0.0:
                add_weighted(column, weight[feature], total)
        for features, block, scale in self._blocks():
            add_rows(block, rows, weight[features] * scale, total)
        scores[order] = total
        return scores

    def _order(self, codes: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Return positions of known people as they lie in memory, and their rows."""
        position = np.full(len(self._week.row), -1, dtype=np.int64)
        late = codes >= len(position) - 1  # they share the last row
        known = np.flatnonzero((codes >= 0) & ~late)
        position[self._week.row[codes[known]]] = known  # a sort, as no two have the same row
        order = np.append(position[position >= 0], np.flatnonzero(late))
        return order, self._week.rows(codes[order])

    def _blocks(self) -> Iterator[tuple[Int64Array, Float32Array, Float32Array]]:
        """Give features of the weekly statistics: their places, rows, and a factor each."""
        week, vector = self._week, self.query.vector
        yield _STEADY_AT, week.steady, np.ones(len(STEADY), dtype=np.float32)
        if week.profiles.shape[1] and vector is not None:
            yield _AXES_AT, week.profiles, (vector[: len(AXES)] / UNIT).astype(np.float32)

    def _each(self, codes: Int64Array, rows: Int64Array) -> Iterator[tuple[int, Float32Array]]:
        """Give the other features that are not 0 for everybody: place, and a number per person."""
        query, week = self.query, self._week
        place = np.full(query.history.n_users, -1, dtype=np.int32)
        place[codes] = np.arange(len(codes), dtype=np.int32)
        again: dict[str, Float32Array] = {}
        for columns in (
            moment_columns(query, week, codes, place),
            self._similarity(rows, place),
        ):
            for name, column in columns.items():
                yield AT[name], column
            again |= {name: columns[name] for name in FEW_OF if name in columns}
        for name, people in zip(ASKER, self._helpers, strict=True):
            at = place[people]
            yield AT[name], np.bincount(at[at >= 0], minlength=len(codes)).astype(np.float32)
        given = query.history.n_given[codes]
        for most in FEW_MOST:
            few = (given <= most).astype(np.float32)
            yield AT[f"few{most}"], few
            for name, column in again.items():
                yield AT[f"few{most}_{name}"], few * column

    def _similarity(self, rows: Int64Array, place: Int32Array) -> dict[str, Float32Array]:
        """Return logarithms, largest values and means of sums over what people posted."""
        history, known = self.query.history, self._week.known
        sums = np.empty((len(rows), N_SUMS), dtype=np.float32)  # a person's side by side
        similar, first = self._similar(rows)
        add_posts(self._posts, rows, similar, sums)
        late, won = self._late.owner, history.answers.owner[self._late_won]
        add_late(late, similar[first:], self._late_worth, place, sums)
        add_won(won, similar[first + len(late) :], place, sums)
        asker = history.questions.asker[known.n_questions :]
        add_asked(asker, similar[first + len(late) + len(won) :], place, sums)
        sums = np.ascontiguousarray(sums.T)
        given = sums[GIVEN] + _CALM
        log_given = log(given)
        half, month, days = self._since.tolist()
        columns: dict[str, Float32Array] = {}
        if self.has_words:
            columns = {
                "text_sum": log(sums[WORDS] + _LEAST),
                "text_max": np.sqrt(sums[WORDS_MAX]),
                "text_near": self._near(len(rows), place),
                "text_recent": log(sums[WORDS_RECENT] * half + _LEAST),
                "text_accepted": log(sums[WORDS_WON] + _LEAST),
                "text_mean": log(sums[WORDS] + _LEAST_MEAN) - log_given,
            }
        if self.has_meaning:
            lately = log(sums[CLOSE_MONTH] * month + _LEAST)
            columns |= {
                "meaning_sum": log(sums[CLOSE] + _LEAST),
                "meaning_max": sums[CLOSE_MAX],
                "meaning_accepted": log(sums[CLOSE_WON] + _LEAST),
                "meaning_recent": log(sums[CLOSE_RECENT] * half + _LEAST),
                "meaning_share": log(sums[CLOSE] + _LEAST_MEAN) - log_given,
                "meaning_month": lately,
                "meaning_days": log(sums[CLOSE_DAYS] * days + _LEAST),
                "meaning_month_share": lately - log(sums[MONTH] * month + _LEAST),
                "meaning_mean": sums[CLOSE_PLAIN] / given,
                "meaning_asked": log(sums[ASKED] + _LEAST),
                "meaning_asked_max": sums[ASKED_MAX],
            }
        if self.has_tags:
            tags = (
                log(sums[TAG] + _LEAST),
                log(sums[TAG_WON] + _LEAST),
                log(sums[TAG] + _LEAST_SHARE) - log_given,
                log(sums[TAG_RECENT] * half + _LEAST),
                log(sums[TAG_SAME] + _LEAST),
            )
            columns |= dict(zip(TAGS, tags, strict=True))
        return columns

    def _similar(self, rows: Int64Array) -> tuple[Float32Array, int]:
        """Return how similar the questions are that some rows need, and where late ones begin.

        Rows of the array are those of the week's questions, of which only what is needed is
        written, then questions answered, accepted and asked since Monday.
        """
        query, week, history = self.query, self._week, self.query.history
        meaning, vector = history.records.meaning, query.vector
        match_scale = np.float32(1.0 / max(float(sum(query.worth.tolist())), 1e-9))
        share_scale = np.float32(1.0 / max(self._best_share, 1e-9))
        late = np.concatenate([
            self._late.question,
            history.answers.question[self._late_won],
            np.arange(week.known.n_questions, history.n_questions),
        ])  # fmt: skip
        first, (until, others) = len(week.order), self._needed(rows)
        similar = np.empty((first + len(late), 4), dtype=np.float32)
        scattered = np.append(week.order[others], late)
        for out, questions, vectors in (
            (similar[:until], week.order[:until], week.vectors[:until]),
            (np.empty((len(scattered), 4), dtype=np.float32), scattered, None),
        ):
            near = np.zeros(len(questions), dtype=np.float32)
            if meaning is not None and vector is not None:
                vectors = meaning.vectors[questions] if vectors is None else vectors
                dots(vectors, vector, np.float32(1.0 / UNIT**2), near)
            given = near, questions, query.match, query.tag_shares, match_scale, share_scale
            put_side_by_side(*given, out)
        similar[others], similar[first:] = out[: len(others)], out[len(others) :]
        return similar, first

    def _needed(self, rows: Int64Array) -> tuple[int, Int64Array]:
        """Return how many of the week's questions to compare in a row, and some further ones.

        The rows, which ascend, need no others. As far as most questions are needed they are taken
        in the order of memory; those of the few rows further down one by one.
        """
        posts, extent = self._posts, self._week.extent
        bounds = (posts.start, posts.asked_start)
        given, asked = (bound[rows + 1] - bound[rows] for bound in bounds)
        size = given + asked
        further = np.append(np.cumsum(size[::-1])[::-1], 0)
        until = np.append(0, extent[rows + 1])
        cut = int(np.argmin(until + _SCATTERED * further))
        parts = [np.zeros(0, dtype=np.int32)]
        for row in rows[cut:][size[cut:] > 0].tolist():
            parts.append(posts.question[posts.start[row] : posts.start[row + 1]])
            parts.append(posts.asked[posts.asked_start[row] : posts.asked_start[row + 1]])
        return int(until[cut]), np.concatenate(parts).astype(np.int64)

    def _near(self, count: int, place: Int32Array) -> Float32Array:
        """Return how much people answered of the few questions nearest by words."""
        query, history = self.query, self.query.history
        answers = history.answers_to(query.nearest)
        at = place[history.answers.owner[answers]]
        at[history.answers.owner[answers] < 0] = -1
        match = query.match[history.answers.question[answers[at >= 0]]]
        total = np.bincount(at[at >= 0], match, minlength=count)
        return log(total / query.best_match + _LEAST)


def _helpers(query: Query) -> tuple[Int64Array, Int64Array]:
    """Return who answered the asker before, and whose answers the asker accepted."""
    history = query.history
    answers = history.answers_to(query.earlier_by_asker)
    answers = answers[history.answers.owner[answers] >= 0]
    owner, best = history.answers.owner[answers], history.is_accepted[answers]
    return np.unique(owner), np.unique(owner[best])


@kernel
def put_side_by_side(
    near: Float32Array,
    questions: AnyArray,
    match: Float32Array,
    share: Float32Array,
    match_scale: np.float32,
    share_scale: np.float32,
    similar: Float32Array,
) -> None:
    """Write similarity by meaning, by words and by tags of some questions in rows of 16 bytes.

    The three are looked up together, at random: one cache line for all. Squares favor a few close
    questions over many that share a common word.
    """
    for place in range(len(questions)):
        words = match[questions[place]] * match_scale
        similar[place, 0] = near[place]
        similar[place, 1] = words * words
        similar[place, 2] = share[questions[place]] * share_scale
        similar[place, 3] = 0.0


@kernel
def add_posts(posts: Posts, rows: Int64Array, similar: Float32Array, sums: Float32Array) -> None:
    """Write sums over what people posted before Monday; their rows ascend.

    Rows of `similar` lie anywhere, and one that is not in the cache takes as long as ten answers:
    they are fetched ahead. The sums of a person stay in registers.
    """
    flat, nothing = similar.reshape(-1), sums_of(np.zeros((1, N_SUMS), dtype=np.float32), 0)
    last, last_asked = len(posts.question) - 1, len(posts.asked) - 1
    for at in range(len(rows)):
        total = nothing
        for k in range(posts.start[rows[at]], posts.start[rows[at] + 1]):
            prefetch(flat, np.int64(4) * posts.question[min(k + _AHEAD, last)])
            total = with_answer(total, posts.question[k], k, similar, posts.worth)
        put_sums(total, sums, at)
        asked = largest = np.float32(0.0)
        for k in range(posts.asked_start[rows[at]], posts.asked_start[rows[at] + 1]):
            prefetch(flat, np.int64(4) * posts.asked[min(k + _AHEAD, last_asked)])
            near = max(similar[posts.asked[k], 0], np.float32(0.0))
            asked += near * near
            largest = max(largest, near)
        sums[at, ASKED], sums[at, ASKED_MAX] = asked, largest


@kernel
def with_answer(
    total: Sums, question: int, row: int, similar: Float32Array, worth: Float32Array
) -> Sums:
    """Return a person's sums with one answer more, whose worth is in a row."""
    (
        words, words_won, words_recent, words_max,
        close, close_won, close_recent, close_month, close_days, plain, close_max,
        month, tag, tag_won, tag_recent, tag_same, given,
    ) = total  # fmt: skip
    near, match, share = similar[question, 0], similar[question, 1], similar[question, 2]
    half, lately, days, won = worth[row, 0], worth[row, 1], worth[row, 2], worth[row, 3]
    positive = max(near, np.float32(0.0))  # no branch: half of them are on the other side of 0
    square = positive * positive
    return (
        words + match, words_won + match * won, words_recent + match * half, max(words_max, match),
        close + square, close_won + square * won, close_recent + square * half,
        close_month + square * lately, close_days + square * days,
        plain + near, max(close_max, positive),
        month + lately, tag + share, tag_won + share * won, tag_recent + share * half,
        tag_same + share * share * share, given + np.float32(1.0),
    )  # fmt: skip


@kernel
def sums_of(sums: Float32Array, at: int) -> Sums:
    """Return the sums in a row as values that stay in registers."""
    return (
        sums[at, 0], sums[at, 1], sums[at, 2], sums[at, 3], sums[at, 4], sums[at, 5],
        sums[at, 6], sums[at, 7], sums[at, 8], sums[at, 9], sums[at, 10], sums[at, 11],
        sums[at, 12], sums[at, 13], sums[at, 14], sums[at, 15], sums[at, 16],
    )  # fmt: skip


@kernel
def put_sums(total: Sums, sums: Float32Array, at: int) -> None:
    """Write a person's sums to their row."""
    for k in range(len(total)):
        sums[at, k] = total[k]


@kernel
def add_late(
    owner: Int64Array,
    similar: Float32Array,
    worth: Float32Array,
    place: Int32Array,
    sums: Float32Array,
) -> None:
    """Add answers that came since Monday, a row of `similar` for each."""
    for row in range(len(owner)):
        if owner[row] >= 0 and place[owner[row]] >= 0:
            at = place[owner[row]]
            put_sums(with_answer(sums_of(sums, at), row, row, similar, worth), sums, at)


@kernel
def add_won(
    owner: Int64Array, similar: Float32Array, place: Int32Array, sums: Float32Array
) -> None:
    """Add what earlier answers count for having been accepted since Monday."""
    for row in range(len(owner)):
        if owner[row] >= 0 and place[owner[row]] >= 0:
            at, near = place[owner[row]], max(similar[row, 0], np.float32(0.0))
            sums[at, CLOSE_WON] += near * near
            sums[at, WORDS_WON] += similar[row, 1]
            sums[at, TAG_WON] += similar[row, 2]


@kernel
def add_asked(
    asker: Int64Array, similar: Float32Array, place: Int32Array, sums: Float32Array
) -> None:
    """Add questions that were asked since Monday."""
    for row in range(len(asker)):
        if asker[row] >= 0 and place[asker[row]] >= 0:
            at, near = place[asker[row]], max(similar[row, 0], np.float32(0.0))
            sums[at, ASKED] += near * near
            sums[at, ASKED_MAX] = max(sums[at, ASKED_MAX], near)


@kernel
def add_weighted(column: Float32Array, weight: float, total: Float64Array) -> None:
    """Add a column, times its weight."""
    for person in range(len(total)):
        total[person] += weight * column[person]


@kernel
def add_rows(
    block: Float32Array, rows: Int64Array, weight: Float64Array, total: Float64Array
) -> None:
    """Add some rows of a block, times a weight for each of its columns."""
    for person in range(len(total)):
        for column in range(len(weight)):
            total[person] += weight[column] * block[rows[person], column]
