"""What in somebody's answers, and questions, speaks for asking them: sums over what is like it.

By meaning, two questions are as close as the cosine of their vectors; what is not close at all
counts as 0, and squares favour the close ones. By words it is the square of their match. One pass
gathers all sums of a person, so that a hundred thousand people are ranked in about the time that it
takes to look at their answers; features are logarithms of these sums (:data:`MADE_OF`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from atpgraph.util.arrays import (
    BoolArray,
    Float32Array,
    Float64Array,
    Int32Array,
    Int64Array,
)
from atpgraph.util.courtesy import breathe
from atpgraph.util.jit import fast_kernel, kernel
from atpgraph_qa.ranking.fading import Fading
from atpgraph_qa.ranking.names import FEW_MOST, MEANING, TEXT
from atpgraph_qa.timeline.history import History, Listed

# Rows of evidence. The first are logarithms: of sums over answers by words (all, accepted, fading),
# by meaning (all, accepted, halved every 180, 30, 10 days), of activity, of questions asked.
(
    WORDS, WORDS_WON, WORDS_RECENT, WORDS_MEAN,
    CLOSE, CLOSE_WON, CLOSE_RECENT, CLOSE_MONTH, CLOSE_DAYS, CLOSE_MEAN,
    MONTH, ASKED, GIVEN,
    WORDS_MAX, CLOSE_MAX, CLOSE_PLAIN, ASKED_MAX,
) = range(17)  # fmt: skip
N_LOGS, N_ROWS = GIVEN + 1, ASKED_MAX + 1

# Every feature as a sum of rows, each with its sign.
MADE_OF: dict[str, tuple[tuple[int, float], ...]] = {
    "text_sum": ((WORDS, 1.0),),
    "text_max": ((WORDS_MAX, 1.0),),
    "text_recent": ((WORDS_RECENT, 1.0),),
    "text_accepted": ((WORDS_WON, 1.0),),
    "text_mean": ((WORDS_MEAN, 1.0), (GIVEN, -1.0)),
    "meaning_sum": ((CLOSE, 1.0),),
    "meaning_max": ((CLOSE_MAX, 1.0),),
    "meaning_accepted": ((CLOSE_WON, 1.0),),
    "meaning_recent": ((CLOSE_RECENT, 1.0),),
    "meaning_share": ((CLOSE_MEAN, 1.0), (GIVEN, -1.0)),
    "meaning_month": ((CLOSE_MONTH, 1.0),),
    "meaning_days": ((CLOSE_DAYS, 1.0),),
    "meaning_month_share": ((CLOSE_MONTH, 1.0), (MONTH, -1.0)),
    "meaning_mean": ((CLOSE_PLAIN, 1.0),),
    "meaning_asked": ((ASKED, 1.0),),
    "meaning_asked_max": ((ASKED_MAX, 1.0),),
    "tag_share": ((GIVEN, -1.0),),
}
_LEAST, _LEAST_MEAN, _CALM = 0.02, 0.05, 5.0
# Answers by person: where each person's begin, whether accepted, how faded, and the likeness of
# their questions from a first one on; and questions by asker, with the same likeness.
Given = tuple[Int64Array, BoolArray, Float32Array, int, Float32Array]
Asked = tuple[Int64Array, Int32Array, int, Float32Array]
# People whose evidence stays in the processor's cache; not a power of 2, or the rows of one person
# would push each other out of it.
_BLOCK = 4000


@dataclass(frozen=True, eq=False)
class Likeness:
    """How much every earlier question is like the one asked.

    Attributes
    ----------
    each : float32 array of shape (questions, 2)
        By meaning, and by words; side by side, since they are looked up together.
    by_meaning, by_words : bool
        Whether there are vectors, or a word in common; zeros otherwise.
    """

    each: Float32Array
    by_meaning: bool
    by_words: bool

    def has(self, name: str) -> bool:
        """Whether a feature of evidence means anything."""
        if name in TEXT:
            return self.by_words
        return self.by_meaning if name in MEANING else True


def gathered(
    history: History, codes: Int64Array, likeness: Likeness, fading: Fading
) -> Iterator[tuple[slice, Float64Array]]:
    """Rows of evidence of users by code, block by block; a block lasts until the next."""
    mine, asked, like = history.by_person, history.by_asker, likeness.each

    def fetched(indptr: Int64Array, questions: Int32Array) -> tuple[int, Float32Array]:
        first, end = span(codes, indptr)
        found = np.empty((end - first, 2), dtype=np.float32)
        fetch(questions[first:end], like, found)
        return first, found

    def of_answers(part: Listed, faded: Float32Array) -> Given:
        return part.indptr, part.accepted, faded, *fetched(part.indptr, part.question)

    def of_questions(indptr: Int64Array, questions: Int32Array) -> Asked:
        return indptr, questions, *fetched(indptr, questions)

    # What is in the index of people, then what came since: sums go on by date.
    given, given_late = of_answers(mine.base, fading.each), of_answers(mine.late, fading.late)
    nothing = np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32)
    early, late = (asked.base, asked.late) if likeness.by_meaning else (nothing, nothing)
    wanted, wanted_late = of_questions(*early), of_questions(*late)
    buffer = np.empty((N_ROWS, min(_BLOCK, max(len(codes), 1))))
    for start in range(0, len(codes), _BLOCK):
        breathe()
        part = slice(start, min(start + _BLOCK, len(codes)))
        rows = buffer[:, : part.stop - part.start]
        known = history.n_questions
        gather(codes[part], given, given_late, wanted, wanted_late, known, fading.since, rows)
        np.log(rows[:N_LOGS], out=rows[:N_LOGS])
        yield part, rows


@kernel
def span(codes: Int64Array, indptr: Int64Array) -> tuple[int, int]:
    """From where to where some people are in an index; p has ``indptr[p] : indptr[p + 1]``."""
    first, end = indptr[-1], indptr[0]
    for place in range(len(codes)):
        if codes[place] < len(indptr) - 1:
            first = min(first, indptr[codes[place]])
            end = max(end, indptr[codes[place] + 1])
    return min(first, end), end


@kernel
def fetch(question: Int32Array, like: Float32Array, found: Float32Array) -> None:
    """Write the likeness of some questions to `found`; of those to come, that of the last known.

    They lie anywhere: a loop that does nothing else has many of them on their way at a time, which
    is why the answers of all people from the first to the last are fetched, and before the sums.
    """
    last = len(like) - 1
    for place in range(len(question)):
        about = np.uint32(min(question[place], last))
        found[place, 0] = like[about, 0]
        found[place, 1] = like[about, 1]


@kernel
def sum_answers(codes: Int64Array, answers: Given, rows: Float64Array) -> None:
    """Go on with the sums over people's answers."""
    indptr, accepted, faded, first, found = answers
    for place in range(len(codes)):
        person = codes[place]
        if person >= len(indptr) - 1:
            continue
        ct, cw, cr = rows[CLOSE, place], rows[CLOSE_WON, place], rows[CLOSE_RECENT, place]
        cm, cd = rows[CLOSE_MONTH, place], rows[CLOSE_DAYS, place]
        cp, cx = rows[CLOSE_PLAIN, place], rows[CLOSE_MAX, place]
        wt, ww, wr = rows[WORDS, place], rows[WORDS_WON, place], rows[WORDS_RECENT, place]
        wx, month = rows[WORDS_MAX, place], rows[MONTH, place]
        for answer in range(indptr[person], indptr[person + 1]):
            near, match = float(found[answer - first, 0]), float(found[answer - first, 1])
            won = accepted[answer]
            recent, lately = float(faded[answer, 0]), float(faded[answer, 1])
            month += lately
            cp += near
            # No branches: half of the questions are on the other side of 0, in no order.
            near = max(near, 0.0)
            cx = max(cx, near)
            near *= near
            ct += near
            cw += near * won
            cr += near * recent
            cm += near * lately
            cd += near * faded[answer, 2]
            wt += match
            ww += match * won
            wr += match * recent
            wx = max(wx, match)
        rows[CLOSE, place], rows[CLOSE_WON, place], rows[CLOSE_RECENT, place] = ct, cw, cr
        rows[CLOSE_MONTH, place], rows[CLOSE_DAYS, place] = cm, cd
        rows[CLOSE_PLAIN, place], rows[CLOSE_MAX, place] = cp, cx
        rows[WORDS, place], rows[WORDS_WON, place], rows[WORDS_RECENT, place] = wt, ww, wr
        rows[WORDS_MAX, place], rows[MONTH, place] = wx, month
        rows[GIVEN, place] += indptr[person + 1] - indptr[person]


@kernel
def sum_asked(codes: Int64Array, asked: Asked, n_questions: int, rows: Float64Array) -> None:
    """The same over the questions that people asked, up to the `n_questions`-th of the site."""
    indptr, questions, first, found = asked
    for place in range(len(codes)):
        person = codes[place]
        if person >= len(indptr) - 1:
            continue
        total, largest = rows[ASKED, place], rows[ASKED_MAX, place]
        for at in range(indptr[person], indptr[person + 1]):
            if questions[at] >= n_questions:
                break
            value = max(float(found[at - first, 0]), 0.0)
            total += value * value
            largest = max(largest, value)
        rows[ASKED, place], rows[ASKED_MAX, place] = total, largest


@kernel
def finish(rows: Float64Array, since: Float64Array) -> None:
    """From sums to what logarithms are taken of."""
    for place in range(rows.shape[1]):
        given = rows[GIVEN, place] + _CALM
        rows[WORDS_MEAN, place] = rows[WORDS, place] + _LEAST_MEAN
        rows[WORDS, place] += _LEAST
        rows[WORDS_WON, place] += _LEAST
        rows[WORDS_RECENT, place] = rows[WORDS_RECENT, place] * since[0] + _LEAST
        rows[CLOSE_MEAN, place] = rows[CLOSE, place] + _LEAST_MEAN
        rows[CLOSE, place] += _LEAST
        rows[CLOSE_WON, place] += _LEAST
        rows[CLOSE_RECENT, place] = rows[CLOSE_RECENT, place] * since[0] + _LEAST
        rows[CLOSE_MONTH, place] = rows[CLOSE_MONTH, place] * since[1] + _LEAST
        rows[CLOSE_DAYS, place] = rows[CLOSE_DAYS, place] * since[2] + _LEAST
        rows[MONTH, place] = rows[MONTH, place] * since[1] + _LEAST
        rows[ASKED, place] += _LEAST
        rows[GIVEN, place] = given
        rows[WORDS_MAX, place] = np.sqrt(rows[WORDS_MAX, place])
        rows[CLOSE_PLAIN, place] /= given


@kernel
def gather(
    codes: Int64Array,
    given: Given,
    given_late: Given,
    asked: Asked,
    asked_late: Asked,
    n_questions: int,
    since: Float64Array,
    rows: Float64Array,
) -> None:
    """All rows of some people but for their logarithms.

    One call: whoever holds the interpreter keeps us waiting after each.
    """
    rows[:] = 0.0
    sum_answers(codes, given, rows)
    sum_answers(codes, given_late, rows)
    sum_asked(codes, asked, n_questions, rows)
    sum_asked(codes, asked_late, n_questions, rows)
    finish(rows, since)


@kernel
def add_up(
    rows: Float64Array,
    weight: Float64Array,
    given: Float64Array,
    codes: Int64Array,
    total: Float64Array,
) -> None:
    """Add every person's weighted rows to their total.

    ``weight[0]`` holds for all; the others count only for people with few answers (``given``, by
    code), whose limits are 10 and 3.
    """
    n = len(codes)
    few = np.empty((2, n))
    for place in range(n):
        few[0, place] = given[codes[place]] <= FEW_MOST[0]
        few[1, place] = given[codes[place]] <= FEW_MOST[1]
    for row in range(len(rows)):
        value, some, fewest = weight[0, row], weight[1, row], weight[2, row]
        if some == 0.0 and fewest == 0.0:
            for place in range(n):
                total[place] += value * rows[row, place]
        else:
            for place in range(n):
                more = some * few[0, place] + fewest * few[1, place]
                total[place] += (value + more) * rows[row, place]


@fast_kernel
def add_forms(
    codes: Int64Array, profiles: Float32Array, along: Float64Array, total: Float64Array
) -> None:
    """Add the form of every person's profile; the last one is that of whoever came later."""
    nobody = len(profiles) - 1
    for place in range(len(codes)):
        person = min(codes[place], nobody)
        value = 0.0
        for axis in range(len(along)):
            value += profiles[person, axis] * along[axis]
        total[place] += value
