"""All features together: one row of numbers per person for a question, or their weighted sum."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import itemgetter

import numpy as np

from atpgraph.util.arrays import Float32Array, Float64Array, Int64Array
from atpgraph_qa.ranking.activity import (
    Activity,
    for_users,
    is_timeless,
    timeless,
    week_start,
)
from atpgraph_qa.ranking.evidence import (
    MADE_OF,
    N_ROWS,
    Likeness,
    add_forms,
    add_up,
    gathered,
)
from atpgraph_qa.ranking.fading import Fading
from atpgraph_qa.ranking.names import AXES, FEW_MOST, FEW_OF, NAMES
from atpgraph_qa.ranking.profiles import along_axes, profiles
from atpgraph_qa.ranking.similarity import Rare, likeness, near_feature, tag_features
from atpgraph_qa.ranking.standing import asker_features, standing
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.memo import Shelf
from atpgraph_qa.timeline.query import Query

Columns = dict[str, Float64Array]
_HISTORIES = 4  # of which sums over everybody are kept
AXES_AT = slice(NAMES.index(AXES[0]), NAMES.index(AXES[0]) + len(AXES))


@dataclass(frozen=True, eq=False)
class Week:
    """Standing of all users at the start of a week, and how to carry their activity on.

    Everything has one entry more than there are users, which holds for whoever comes later.
    """

    standing: Columns
    activity: Activity | None
    profiles: Float32Array | None

    def columns(self, query: Query, codes: Int64Array | None = None) -> Columns:
        """Standing and activity of users whose codes ascend, of all by default."""
        n = query.history.n_users
        columns = {
            name: for_users(column, n)
            if codes is None
            else column[np.minimum(codes, len(column) - 1)]
            for name, column in self.standing.items()
        }
        if self.activity is not None:
            return columns | self.activity.features(query, codes)
        timing = timeless(query)
        return columns | (timing if codes is None else {n: c[codes] for n, c in timing.items()})


@dataclass(frozen=True, eq=False)
class Case:
    """What of a question speaks for people, before it is summed up for each.

    Attributes
    ----------
    likeness : Likeness
    fading : Fading
    rare : dict
        Features that are the same for all but a few.
    """

    likeness: Likeness
    fading: Fading
    rare: dict[str, Rare]

    @classmethod
    def of(cls, query: Query) -> Case:
        """Kept, since several methods rank the people for the same question."""

        def make() -> Case:
            fading = Fading.at(query)
            rare = near_feature(query) | tag_features(query, fading) | asker_features(query)
            return cls(likeness(query), fading, rare)

        return query.history.records.memo.get(CASES, query, make)

    def made_of(self) -> dict[str, tuple[tuple[int, float], ...]]:
        """The features of evidence that this question has."""
        return {
            name: parts
            for name, parts in MADE_OF.items()
            if (name in self.rare if name == "tag_share" else self.likeness.has(name))
        }


class Shared:
    """The part of everybody's weighted sum that does not depend on what is asked, but on when.

    It is kept for the last few histories; where a few answers came since, only the people who gave
    them are looked at anew.
    """

    def __init__(self) -> None:
        self._latest: list[tuple[int, Float64Array]] = []  # replaced, never changed

    def of(self, query: Query, week: Week, weight: Float64Array) -> Float64Array:
        """One number per user; not to be changed."""
        history, kept = query.history, self._latest
        n = history.n_answers
        # Others may rank by what came since, while this question is still about what was before.
        fit = [one for one in kept if one[0] <= n and len(one[1]) <= history.n_users]
        if not fit:
            total = _weigh(week.columns(query), history.n_given, weight)
        else:
            known, total = max(fit, key=itemgetter(0))
            owner = history.answers.owner[known:]
            newer = np.arange(len(total), history.n_users)
            changed = np.unique(np.concatenate([owner[owner >= 0], newer]))
            if len(changed):
                total = np.concatenate([total, np.zeros(len(newer))])
                columns = week.columns(query, changed)
                total[changed] = _weigh(columns, history.n_given[changed], weight)
        if all(one[0] != n for one in kept):
            self._latest = sorted([*kept, (n, total)], key=itemgetter(0))[-_HISTORIES:]
        return total


WEEKS: Shelf[Week] = Shelf("weeks", keep=2)
CASES: Shelf[Case] = Shelf("cases", keep=1)
STEADY: Shelf[Columns] = Shelf("standing and activity", keep=1)
SHARED: Shelf[Shared] = Shelf("weighted moments", keep=4)


class FeatureSpace:
    """Computes features of people for a question.

    Notes
    -----
    Counts and rates of users are those of the last Monday, which spares most of the work when many
    questions are ranked; activity, text, tags and the asker's own history are of the very moment.
    """

    def columns(self, query: Query, codes: Int64Array, names: Iterable[str] = NAMES) -> Columns:
        """Features of users by code, those of `names` that the question has."""
        history, wanted = query.history, set(names)
        week, case = _week(history), Case.of(query)
        steady = history.records.memo.get(
            STEADY, (history, query.asked_ms), lambda: week.columns(query)
        )
        columns = {name: column[codes] for name, column in steady.items() if name in wanted}
        made_of = {name: parts for name, parts in case.made_of().items() if name in wanted}
        made = {name: np.zeros(len(codes)) for name in made_of}
        for block, rows in gathered(history, codes, case.likeness, case.fading):
            for name, parts in made_of.items():
                for row, sign in parts:
                    made[name][block] += sign * rows[row]
        for name, rare in case.rare.items():
            if name in wanted:
                made[name] = made.get(name, 0.0) + rare.column(history.n_users)[codes]
        columns |= made
        for most in FEW_MOST:
            few = (history.n_given[codes] <= most).astype(np.float64)
            columns[f"few{most}"] = few
            columns |= {f"few{most}_{n}": few * columns[n] for n in FEW_OF if n in columns}
        along = along_axes(query)
        if along is not None and week.profiles is not None:
            known = week.profiles[np.minimum(codes, len(week.profiles) - 1)]
            columns |= {name: known[:, k] * along[k] for k, name in enumerate(AXES)}
        return columns

    def rows(self, query: Query, codes: Int64Array) -> Float64Array:
        """Features of users by code: an array of shape (codes, features), in the order of NAMES.

        Zeros for −1 and for features that the question does not have.
        """
        rows, known = np.zeros((len(codes), len(NAMES))), codes >= 0
        for name, column in self.columns(query, codes[known]).items():
            rows[known, NAMES.index(name)] = column
        return rows

    def weighted(self, query: Query, weight: Float64Array, codes: Int64Array) -> Float64Array:
        """Σ weight · feature of users by code: ``rows(…) @ weight``, without the rows."""
        history, week, case = query.history, _week(query.history), Case.of(query)
        shared = Shared()
        if not is_timeless(history):
            key = week, query.asked_ms, weight.tobytes()
            shared = history.records.memo.get(SHARED, key, Shared)
        total = shared.of(query, week, weight).copy()
        worth, usual = dict(zip(NAMES, weight.tolist(), strict=True)), 0.0
        for name, rare in case.rare.items():
            usual += worth[name] * rare.usual
            total[rare.codes] += worth[name] * (rare.values - rare.usual)
        result = total[codes] + usual
        along = along_axes(query)
        if along is not None and week.profiles is not None:
            add_forms(codes, week.profiles, weight[AXES_AT] * along, result)
        per_row = _per_row(case, worth)
        for block, rows in gathered(history, codes, case.likeness, case.fading):
            add_up(rows, per_row, history.n_given, codes[block], result[block])
        return np.asarray(result)


def _week(history: History) -> Week:
    known = history if is_timeless(history) else week_start(history)

    def make() -> Week:
        wider = History(history.records.with_nobody(), known.now)
        activity = None if is_timeless(known) else Activity(wider)
        return Week(standing(wider), activity, profiles(wider))

    return history.records.memo.get(WEEKS, known.now, make)


def _weigh(columns: Columns, given: Float64Array, weight: Float64Array) -> Float64Array:
    """Σ weight · feature over features that do not depend on what is asked."""
    worth = dict(zip(NAMES, weight.tolist(), strict=True))
    total = np.zeros(len(given))
    for name, column in columns.items():
        total += worth[name] * column
    for most in FEW_MOST:
        few = (given <= most).astype(np.float64)
        total += worth[f"few{most}"] * few
        for name in FEW_OF:
            if name in columns:
                total += worth[f"few{most}_{name}"] * (few * columns[name])
    return total


def _per_row(case: Case, worth: dict[str, float]) -> Float64Array:
    """Weights of the rows of evidence: for all people, and what is more for those with few."""
    weight = np.zeros((1 + len(FEW_MOST), N_ROWS))
    for name, parts in case.made_of().items():
        for row, sign in parts:
            weight[0, row] += sign * worth[name]
            if name in FEW_OF:
                for group, most in enumerate(FEW_MOST, start=1):
                    weight[group, row] += sign * worth[f"few{most}_{name}"]
    return weight
