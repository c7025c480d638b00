"""Compute the features of people for a question: one path for training and for serving.

:class:`Features` prepares what depends on the question alone (how similar every earlier question
is), then :meth:`Features.columns` gives one column per feature for any people. Counts and rates are
those of the last Monday (:mod:`~atpgraph_qa.ranking.weekly`), which spares most of the work when
many questions are ranked; activity, similarity, tags and the asker's own history are of the moment.

A person's answers are in an index that was built with the records (the base); answers that came
since are few and are scanned. Both are added up in the order of time, so a sum does not depend on
when the index was built.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from atpgraph.util.arrays import (
    BoolArray,
    Float32Array,
    Float64Array,
    Int32Array,
    Int64Array,
)
from atpgraph.util.courtesy import breathe
from atpgraph.util.jit import kernel
from atpgraph_qa.ranking.names import ASKER, AXES, FEW_MOST, FEW_OF, NAMES, TAGS
from atpgraph_qa.ranking.weekly import fading_factors, moment_columns, weekly_stats
from atpgraph_qa.timeline.meaning import UNIT
from atpgraph_qa.timeline.query import Query

AT = {name: place for place, name in enumerate(NAMES)}
_NEAREST = 30
_LEAST, _LEAST_MEAN, _LEAST_SHARE, _CALM = 0.02, 0.05, 0.5, 5.0
_BLOCK = 8000  # people whose columns stay in the processor's cache; not a power of 2

# Sums over a person's answers (by words, by meaning, by tags) and over the questions they asked.
(
    WORDS, WORDS_WON, WORDS_RECENT, WORDS_MAX,
    CLOSE, CLOSE_WON, CLOSE_RECENT, CLOSE_MONTH, CLOSE_DAYS, CLOSE_PLAIN, CLOSE_MAX,
    MONTH, TAG, TAG_WON, TAG_RECENT, TAG_SAME, GIVEN,
    ASKED, ASKED_MAX,
) = range(19)  # fmt: skip
N_SUMS = ASKED_MAX + 1


class Posts(NamedTuple):
    """Answers and questions by person, for the kernel.

    Those of person p in the base are ``start[p] : start[p + 1]``, by date, with answers from
    ``n_answers`` and questions from ``n_questions`` on being of the future.
    """

    start: Int64Array
    answer: Int32Array
    question: Int32Array
    asked_start: Int64Array
    asked: Int32Array
    late_owner: Int64Array  # of answers after the base
    late_question: Int64Array
    late_asker: Int64Array  # of questions after the base
    n_answers: int
    n_questions: int


class Features:
    """Features of people for one question.

    Parameters
    ----------
    query : Query
    """

    def __init__(self, query: Query) -> None:
        history, base = query.history, query.history.records.base
        self.query, self._week = query, weekly_stats(history)
        self._posts = Posts(
            base.by_owner[0],
            base.owned_answers,
            base.owned_questions,
            *base.by_asker,
            history.answers.owner[len(base.answers) :],
            history.answers.question[len(base.answers) :],
            history.questions.asker[len(base.questions) :],
            min(history.n_answers, len(base.answers)),
            min(history.n_questions, len(base.questions)),
        )
        self._faded, self._late_faded, self._since = fading_factors(query, self._week)
        self.has_words = query.best_match > 0.0
        self.has_meaning = query.closeness is not None and history.n_questions > 0
        share = query.tag_shares / max(float(query.tag_shares.max(initial=0.0)), 1e-9)
        self.has_tags = bool(share.max(initial=0.0) > 0.0)
        ideal = max(float(sum(query.worth.tolist())), 1e-9) if self.has_words else 1.0
        near = query.closeness
        if near is None:
            near = np.zeros(history.n_questions, dtype=np.float32)
        self._similar = np.empty((history.n_questions, 4), dtype=np.float32)
        put_side_by_side(near, query.match, ideal, share, self._similar)
        self._nearest = _nearest(query) if self.has_words else None
        self._helpers = _helpers(query)

    def columns(self, codes: Int64Array) -> Float32Array:
        """Return an array of shape (features, people); −1 is nobody, whose features are 0."""
        known = codes >= 0
        if not known.all():
            result = np.zeros((len(NAMES), len(codes)), dtype=np.float32)
            result[:, known] = self.columns(codes[known])
            return result
        history, week = self.query.history, self._week
        columns = np.zeros((len(NAMES), len(codes)), dtype=np.float32)
        place = np.full(history.n_users, -1, dtype=np.int32)
        place[codes] = np.arange(len(codes), dtype=np.int32)
        for name, steady in week.steady.items():
            columns[AT[name]] = steady[np.minimum(codes, len(steady) - 1)]
        for name, column in moment_columns(self.query, week, codes, place).items():
            columns[AT[name]] = column
        sums = np.zeros((len(codes), N_SUMS))  # a person's side by side
        add_up(
            codes, place, self._posts, self._similar, history.is_accepted,
            self._faded, self._late_faded, sums,
        )  # fmt: skip
        self._from_sums(np.ascontiguousarray(sums.T), columns)
        self._sparse(place, columns)
        for most in FEW_MOST:
            few = (history.n_given[codes] <= most).astype(np.float32)
            columns[AT[f"few{most}"]] = few
            for name in FEW_OF:
                np.multiply(few, columns[AT[name]], out=columns[AT[f"few{most}_{name}"]])
        if week.profiles is not None and self.query.vector is not None:
            profile = week.profiles[np.minimum(codes, len(week.profiles) - 1)].T
            along = (self.query.vector[: len(AXES)] / UNIT).astype(np.float32)
            np.multiply(profile, along[:, None], out=columns[AT[AXES[0]] : AT[AXES[-1]] + 1])
        return columns

    def scores(self, codes: Int64Array, weight: Float64Array) -> Float64Array:
        """Return Σ weight · feature for every person."""
        scores = np.empty(len(codes))
        for start in range(0, len(codes), _BLOCK):
            breathe()
            part = slice(start, start + _BLOCK)
            weigh(self.columns(codes[part]), weight, scores[part])
        return scores

    def _from_sums(self, sums: Float64Array, columns: Float32Array) -> None:
        """Fill the columns that are logarithms, largest values and means of sums."""
        given = sums[GIVEN] + _CALM
        log_given = _log(given)
        half, month, days = self._since.tolist()
        if self.has_words:
            columns[AT["text_sum"]] = _log(sums[WORDS] + _LEAST)
            columns[AT["text_max"]] = np.sqrt(sums[WORDS_MAX])
            columns[AT["text_recent"]] = _log(sums[WORDS_RECENT] * half + _LEAST)
            columns[AT["text_accepted"]] = _log(sums[WORDS_WON] + _LEAST)
            columns[AT["text_mean"]] = _log(sums[WORDS] + _LEAST_MEAN) - log_given
        if self.has_meaning:
            lately = _log(sums[CLOSE_MONTH] * month + _LEAST)
            columns[AT["meaning_sum"]] = _log(sums[CLOSE] + _LEAST)
            columns[AT["meaning_max"]] = sums[CLOSE_MAX]
            columns[AT["meaning_accepted"]] = _log(sums[CLOSE_WON] + _LEAST)
            columns[AT["meaning_recent"]] = _log(sums[CLOSE_RECENT] * half + _LEAST)
            columns[AT["meaning_share"]] = _log(sums[CLOSE] + _LEAST_MEAN) - log_given
            columns[AT["meaning_month"]] = lately
            columns[AT["meaning_days"]] = _log(sums[CLOSE_DAYS] * days + _LEAST)
            columns[AT["meaning_month_share"]] = lately - _log(sums[MONTH] * month + _LEAST)
            columns[AT["meaning_mean"]] = sums[CLOSE_PLAIN] / given
            columns[AT["meaning_asked"]] = _log(sums[ASKED] + _LEAST)
            columns[AT["meaning_asked_max"]] = sums[ASKED_MAX]
        if self.has_tags:
            total, won, recent, same = sums[TAG], sums[TAG_WON], sums[TAG_RECENT], sums[TAG_SAME]
            for name, value in zip(
                TAGS,
                (
                    _log(total + _LEAST),
                    _log(won + _LEAST),
                    _log(total + _LEAST_SHARE) - log_given,
                    _log(recent * half + _LEAST),
                    _log(same + _LEAST),
                ),
                strict=True,
            ):
                columns[AT[name]] = value

    def _sparse(self, place: Int32Array, columns: Float32Array) -> None:
        """Fill the columns that differ for a few people only."""
        if self._nearest is not None:
            people, near = self._nearest
            there = place[people] >= 0
            columns[AT["text_near"]] = np.log(_LEAST)
            columns[AT["text_near"], place[people[there]]] = near[there]
        for name, people in zip(ASKER, self._helpers, strict=True):
            at = place[people]
            columns[AT[name], at[at >= 0]] = 1.0


def _log(values: Float64Array) -> Float32Array:
    """Logarithms in single precision, which take a fraction of the time."""
    small = values.astype(np.float32)
    return np.log(small, out=small)


def _nearest(query: Query) -> tuple[Int64Array, Float64Array]:
    """Who answered the questions nearest by words, and their feature."""
    history, match = query.history, query.match
    best = np.full(min(_NEAREST, len(match)), -1, dtype=np.int64)
    best = np.sort(best[: find_largest(match, best)])
    answers = history.answers_to(best)
    answers = answers[history.answers.owner[answers] >= 0]
    people, place = np.unique(history.answers.owner[answers], return_inverse=True)
    total = np.bincount(place, match[history.answers.question[answers]], minlength=len(people))
    return people, np.log(total / query.best_match + _LEAST)


def _helpers(query: Query) -> tuple[Int64Array, Int64Array]:
    """Who answered the asker before, and whose answers the asker accepted."""
    history = query.history
    answers = history.answers_to(query.earlier_by_asker)
    answers = answers[history.answers.owner[answers] >= 0]
    owner, best = history.answers.owner[answers], history.is_accepted[answers]
    return np.unique(owner), np.unique(owner[best])


@kernel
def find_largest(values: Float64Array, best: Int64Array) -> int:
    """Write the places of the largest values above 0 to `best`, largest first; return how many.

    Of equals the first ones. One pass: after a few values hardly any is among the largest so far.
    """
    found = 0
    for place in range(len(values)):
        value = values[place]
        if value <= 0.0 or (found == len(best) and value <= values[best[found - 1]]):
            continue
        at = found if found < len(best) else found - 1
        found = max(found, at + 1)
        while at > 0 and values[best[at - 1]] < value:
            best[at] = best[at - 1]
            at -= 1
        best[at] = place
    return found


@kernel
def put_side_by_side(
    near: Float32Array,
    match: Float64Array,
    ideal: float,
    share: Float64Array,
    similar: Float32Array,
) -> None:
    """Write similarity by meaning, by words and by tags of every question in one row of 16 bytes.

    The three are looked up together, at random: one cache line each. Squares favor a few close
    questions over many that share a common word.
    """
    for question in range(len(similar)):
        words = match[question] / ideal
        similar[question, 0] = near[question]
        similar[question, 1] = words * words
        similar[question, 2] = share[question]
        similar[question, 3] = 0.0


@kernel
def add_up(
    codes: Int64Array,
    place: Int32Array,
    posts: Posts,
    similar: Float32Array,
    is_accepted: BoolArray,
    faded: Float32Array,
    late_faded: Float32Array,
    sums: Float64Array,
) -> None:
    """Add up what every person answered and asked; ``place`` says which row is a person's."""
    total = 0
    for at in range(len(codes)):
        if codes[at] < len(posts.start) - 1:
            total += posts.start[codes[at] + 1] - posts.start[codes[at]]
    # They lie anywhere: a loop that does nothing else has many of them on their way at a time.
    found = np.empty((total, 4), dtype=np.float32)
    total = 0
    for at in range(len(codes)):
        if codes[at] >= len(posts.start) - 1:
            continue
        for row in range(posts.start[codes[at]], posts.start[codes[at] + 1]):
            if posts.answer[row] >= posts.n_answers:
                break
            question = posts.question[row]
            found[total, 0] = similar[question, 0]
            found[total, 1] = similar[question, 1]
            found[total, 2] = similar[question, 2]
            found[total, 3] = is_accepted[posts.answer[row]]
            total += 1
    total = 0
    for at in range(len(codes)):
        person = codes[at]
        if person < len(posts.start) - 1:
            total = sum_base(person, posts, found, total, faded, sums[at])
        if person < len(posts.asked_start) - 1:
            for row in range(posts.asked_start[person], posts.asked_start[person + 1]):
                if posts.asked[row] >= posts.n_questions:
                    break
                add_question(similar[posts.asked[row], 0], sums[at])
    first = len(is_accepted) - len(posts.late_owner)
    for row in range(len(posts.late_owner)):
        person = posts.late_owner[row]
        if person >= 0 and place[person] >= 0:
            one = similar[posts.late_question[row]]
            won = is_accepted[first + row]
            add_answer(one, won, late_faded[row], sums[place[person]])
    first = len(similar) - len(posts.late_asker)
    for row in range(len(posts.late_asker)):
        person = posts.late_asker[row]
        if person >= 0 and place[person] >= 0:
            add_question(similar[first + row, 0], sums[place[person]])


@kernel
def sum_base(
    person: int,
    posts: Posts,
    found: Float32Array,
    at: int,
    faded: Float32Array,
    total: Float64Array,
) -> int:
    """Add up a person's answers of the base, `found` from `at` on; return where the next begin.

    The sums stay in registers.
    """
    words = words_won = words_recent = words_max = 0.0
    close = close_won = close_recent = close_month = close_days = plain = close_max = 0.0
    month = tag = tag_won = tag_recent = tag_same = 0.0
    count = 0
    for row in range(posts.start[person], posts.start[person + 1]):
        if posts.answer[row] >= posts.n_answers:
            break
        near, match = float(found[at + count, 0]), float(found[at + count, 1])
        share, won = float(found[at + count, 2]), float(found[at + count, 3])
        count += 1
        half, lately = float(faded[row, 0]), float(faded[row, 1])
        plain += near
        # No branch: half of the questions are on the other side of 0, in no order.
        near = max(near, 0.0)
        close_max = max(close_max, near)
        near *= near
        close += near
        close_won += near * won
        close_recent += near * half
        close_month += near * lately
        close_days += near * faded[row, 2]
        month += lately
        words += match
        words_won += match * won
        words_recent += match * half
        words_max = max(words_max, match)
        tag += share
        tag_won += share * won
        tag_recent += share * half
        tag_same += share * share * share
    total[WORDS], total[WORDS_WON], total[WORDS_RECENT] = words, words_won, words_recent
    total[WORDS_MAX], total[CLOSE], total[CLOSE_WON] = words_max, close, close_won
    total[CLOSE_RECENT], total[CLOSE_MONTH], total[CLOSE_DAYS] = (
        close_recent,
        close_month,
        close_days,
    )
    total[CLOSE_PLAIN], total[CLOSE_MAX], total[MONTH] = plain, close_max, month
    total[TAG], total[TAG_WON], total[TAG_RECENT], total[TAG_SAME] = (
        tag,
        tag_won,
        tag_recent,
        tag_same,
    )
    total[GIVEN] = count
    return at + count


@kernel
def add_answer(
    similar: Float32Array, is_accepted: bool, faded: Float32Array, total: Float64Array
) -> None:
    """Add one answer to a person's sums: what :func:`sum_base` does for each."""
    near, match, share = float(similar[0]), float(similar[1]), float(similar[2])
    won, half, lately = 1.0 * is_accepted, float(faded[0]), float(faded[1])
    total[CLOSE_PLAIN] += near
    near = max(near, 0.0)
    total[CLOSE_MAX] = max(total[CLOSE_MAX], near)
    near *= near
    total[CLOSE] += near
    total[CLOSE_WON] += near * won
    total[CLOSE_RECENT] += near * half
    total[CLOSE_MONTH] += near * lately
    total[CLOSE_DAYS] += near * faded[2]
    total[MONTH] += lately
    total[WORDS] += match
    total[WORDS_WON] += match * won
    total[WORDS_RECENT] += match * half
    total[WORDS_MAX] = max(total[WORDS_MAX], match)
    total[TAG] += share
    total[TAG_WON] += share * won
    total[TAG_RECENT] += share * half
    total[TAG_SAME] += share * share * share
    total[GIVEN] += 1.0


@kernel
def add_question(near: float, total: Float64Array) -> None:
    """Add one question that a person asked."""
    value = max(float(near), 0.0)
    total[ASKED] += value * value
    total[ASKED_MAX] = max(total[ASKED_MAX], value)


@kernel
def weigh(columns: Float32Array, weight: Float64Array, total: Float64Array) -> None:
    """Write the weighted sum of the columns; always in the same order, whoever else is ranked."""
    total[:] = 0.0
    for feature in range(len(columns)):
        if weight[feature] != 0.0:
            for person in range(len(total)):
                total[person] += weight[feature] * columns[feature, person]
