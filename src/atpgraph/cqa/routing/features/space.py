"""All features together: one row of numbers per person for a question."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from atpgraph._typing import Float64Array, Int64Array
from atpgraph.cqa.routing.features.activity import (
    Activity,
    for_users,
    is_timeless,
    timeless,
    week_start,
)
from atpgraph.cqa.routing.features.closeness import Fading, meaning_features
from atpgraph.cqa.routing.features.few import few_features
from atpgraph.cqa.routing.features.names import AXES, NAMES
from atpgraph.cqa.routing.features.profiles import add_form, along_axes, axis_features, profiles
from atpgraph.cqa.routing.features.similarity import freshness, tag_features, text_features
from atpgraph.cqa.routing.features.standing import asker_features, standing
from atpgraph.cqa.routing.timeline.history import History
from atpgraph.cqa.routing.timeline.memo import Shelf
from atpgraph.cqa.routing.timeline.query import Query

Columns = dict[str, Float64Array]
AXES_AT = slice(NAMES.index(AXES[0]), NAMES.index(AXES[0]) + len(AXES))


@dataclass(frozen=True, eq=False)
class Week:
    """Standing of all users at the start of a week, and how to carry their activity on.

    Both have one entry more than there are users, which holds for whoever comes later.
    """

    standing: Columns
    activity: Activity | None
    profiles: Float64Array | None


@dataclass(frozen=True, eq=False)
class Moment:
    """What all questions asked at the same time share.

    Attributes
    ----------
    columns : dict
        Standing and activity of all users.
    fresh : float64 array
        See :func:`~.similarity.freshness`.
    log_given : float64 array
        log(answers + 5) of every user.
    fading : Fading or None
        None without vectors.
    profiles : float64 array or None
        What everybody's answers were about at the start of the week; None without shared axes.
    """

    columns: Columns
    fresh: Float64Array
    log_given: Float64Array
    fading: Fading | None
    profiles: Float64Array | None


WEEKS: Shelf[Week] = Shelf("weeks", keep=2)
MOMENTS: Shelf[Moment] = Shelf("moments", keep=1)
OWN: Shelf[Columns] = Shelf("features of a question", keep=1)
SHARED: Shelf[Float64Array] = Shelf("weighted moments", keep=4)


class FeatureSpace:
    """Computes features of people for a question.

    Notes
    -----
    Counts and rates of users are those of the last Monday, which spares most of the work when many
    questions are ranked; activity, text, tags and the asker's own history are of the very moment.
    """

    def moment(self, query: Query) -> Moment:
        """The part that does not depend on what is asked, but on when."""
        history = query.history

        def make() -> Moment:
            week = _week(history)
            timing = week.activity.features(query) if week.activity else timeless(query)
            log_given = np.log(history.n_given + 5.0)
            n = history.n_users
            steady = {name: for_users(column, n) for name, column in week.standing.items()}
            fading = None if history.records.meaning is None else Fading.at(query)
            known = None if week.profiles is None else for_users(week.profiles, n)
            return Moment({**steady, **timing}, freshness(query), log_given, fading, known)

        return history.records.memo.get(MOMENTS, (history, query.asked_ms), make)

    def own(self, query: Query, moment: Moment) -> Columns:
        """The part that no two questions share."""

        def make() -> Columns:
            columns = {
                **text_features(query, moment.fresh, moment.log_given),
                **meaning_features(query, moment.fading, moment.log_given),
                **tag_features(query, moment.fresh, moment.log_given),
                **asker_features(query),
            }
            return columns | few_features(query, moment.columns | columns)

        # Kept, since several methods rank the people for the same question.
        return query.history.records.memo.get(OWN, query, make)

    def columns(self, query: Query) -> Columns:
        """Every feature of all users."""
        moment, along = self.moment(query), along_axes(query)
        columns = moment.columns | self.own(query, moment)
        if along is None or moment.profiles is None:
            return columns
        return columns | axis_features(moment.profiles, along)

    def rows(self, query: Query, codes: Int64Array) -> Float64Array:
        """Features of users by code: an array of shape (codes, features), in the order of NAMES."""
        return rows_of(self.columns(query), codes)

    def weighted(self, query: Query, weight: Float64Array) -> Float64Array:
        """Σ weight · feature for every user: what ``rows(…) @ weight`` gives, without the rows."""
        moment, n = self.moment(query), query.history.n_users
        shared = query.history.records.memo.get(
            SHARED, (moment, weight.tobytes()), lambda: _weighted(moment.columns, weight, n)
        )
        total = shared + _weighted(self.own(query, moment), weight, n)
        along = along_axes(query)
        if along is not None and moment.profiles is not None:
            add_form(moment.profiles, weight[AXES_AT] * along, total)
        return total


def rows_of(columns: Columns, codes: Int64Array) -> Float64Array:
    """Columns as one array, for users by code; zeros for −1 and for features that are not there."""
    rows = np.zeros((len(codes), len(NAMES)))
    known = codes >= 0
    for place, name in enumerate(NAMES):
        if name in columns:
            rows[known, place] = columns[name][codes[known]]
    return rows


def _week(history: History) -> Week:
    known = history if is_timeless(history) else week_start(history)

    def make() -> Week:
        wider = History(history.records.with_nobody(), known.now)
        activity = None if is_timeless(known) else Activity(wider)
        return Week(standing(wider), activity, profiles(wider))

    return history.records.memo.get(WEEKS, known.now, make)


def _weighted(columns: Columns, weight: Float64Array, n: int) -> Float64Array:
    total, part = np.zeros((2, n))
    for name, value in zip(NAMES, weight.tolist(), strict=True):
        if value and name in columns:
            total += np.multiply(columns[name], value, out=part)
    return total
