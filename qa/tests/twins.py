"""A ranking by plain NumPy sums that shares nothing between questions.

The benchmark times the ranking, too; neither looks at how the other gets its sums.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.ranking.features import AT
from atpgraph_qa.ranking.names import AXES, FEW_MOST, FEW_OF, NAMES
from atpgraph_qa.ranking.router import Router
from atpgraph_qa.ranking.user_stats import user_stats
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.meaning import UNIT
from atpgraph_qa.timeline.query import Query, active_users


def plain_matches(query: Query) -> np.ndarray:
    """BM25 of every earlier question, from the whole table of counts."""
    history = query.history
    counts = history.corpus.settled().counts
    norm = 1.2 * (0.25 + 0.75 * np.asarray(counts.sum(axis=1)).ravel() / history.mean_length)
    scores = np.zeros(counts.shape[0])
    for code, factor in zip(query.terms[0].tolist(), query.worth.tolist(), strict=True):
        if code < counts.shape[1]:  # words that nobody used before have larger codes
            count = counts[:, [code]].toarray().ravel()
            scores += factor * count * 2.2 / (count + norm)
    scores = scores[: history.n_questions]
    return np.where(history.questions.present, scores, 0.0)


def plain_columns(query: Query) -> np.ndarray:
    """Features of all users, (features, users): every answer looked at, nothing kept."""
    history, n = query.history, query.history.n_users
    week = History(replace(history.records), history.week_ms)  # counts and rates are of Monday
    found = dict(user_stats(week))
    asked_ms, owner, question = query.asked_ms, history.answers.owner, history.answers.question
    seen = owner >= 0
    owner, question = owner[seen], question[seen]
    days = (asked_ms - history.answers.given_ms[seen]) / DAY_MS
    won = history.is_accepted[seen].astype(np.float64)
    given = history.n_given

    def total(values: np.ndarray, to: np.ndarray = owner) -> np.ndarray:
        return np.bincount(to, values, minlength=n)

    def most(values: np.ndarray, to: np.ndarray = owner) -> np.ndarray:
        result = np.zeros(n)
        np.maximum.at(result, to, values)
        return result

    for half in (3, 15, 60, 365):
        found[f"fading_{half}"] = np.log(total(0.5 ** (days / half)) + 0.02)
    known = (np.flatnonzero(seen) < week.n_answers).astype(np.float64)  # acceptances are of Monday
    known[known > 0] = week.is_accepted[np.flatnonzero(seen)[known > 0]]
    for half in (60, 365):
        found[f"accepted_{half}"] = np.log(total(known * 0.5 ** (days / half)) + 0.02)
    ever = given > 0
    idle, tenure = np.full(n, 3650.0), np.zeros(n)
    np.minimum.at(idle, owner, np.maximum(days, 0.0))
    np.maximum.at(tenure, owner, days)
    found["days_since"] = -np.log(np.where(ever, idle, 3650.0) + 0.05)
    found["tenure"] = np.log1p(tenure)
    hours = (asked_ms // 3_600_000 - week.answers.given_ms // 3_600_000) % 24
    around = (np.minimum(hours, 24 - hours) <= 3).astype(np.float64)
    found["hour"] = np.log((week.per_user(around) + 1.75) / (week.n_given + 7.0))

    match = plain_matches(query)
    words = (match / max(query.worth.sum(), 1e-9))[question] ** 2
    if match.max(initial=0.0) > 0:
        nearest = np.argsort(-match, kind="stable")[:30]
        near = np.isin(question, nearest[match[nearest] > 0])
        found["text_sum"] = np.log(total(words) + 0.02)
        found["text_max"] = np.sqrt(most(words))
        share = total(match[question] * near) / match.max()
        found["text_near"] = np.log(share + 0.02)
        found["text_recent"] = np.log(total(words * 0.5 ** (days / 180)) + 0.02)
        found["text_accepted"] = np.log(total(words * won) + 0.02)
        found["text_mean"] = np.log(total(words) + 0.05) - np.log(given + 5.0)
    if query.vector is not None:
        vectors = history.records.meaning.vectors.astype(np.float64) / UNIT  # type: ignore[union-attr]
        unit = query.vector / UNIT
        near = vectors[question] @ unit
        square = np.maximum(near, 0.0) ** 2
        asker = history.questions.asker
        close = np.maximum(vectors[: history.n_questions][asker >= 0] @ unit, 0.0)
        asker, month = asker[asker >= 0], 0.5 ** (days / 30)
        found["meaning_sum"] = np.log(total(square) + 0.02)
        found["meaning_max"] = most(near)
        found["meaning_accepted"] = np.log(total(square * won) + 0.02)
        found["meaning_recent"] = np.log(total(square * 0.5 ** (days / 180)) + 0.02)
        found["meaning_share"] = np.log(total(square) + 0.05) - np.log(given + 5.0)
        found["meaning_month"] = np.log(total(square * month) + 0.02)
        found["meaning_days"] = np.log(total(square * 0.5 ** (days / 10)) + 0.02)
        found["meaning_month_share"] = found["meaning_month"] - np.log(total(month) + 0.02)
        found["meaning_mean"] = total(near) / (given + 5.0)
        found["meaning_asked"] = np.log(total(close**2, asker) + 0.02)
        found["meaning_asked_max"] = most(close, asker)
        if history.records.meaning.is_shared:  # type: ignore[union-attr]
            before = week.answers.owner >= 0
            own = vectors[week.answers.question[before]]
            for k, name in enumerate(AXES):
                profile = total(own[:, k], week.answers.owner[before]) / (week.n_given + 5.0)
                found[name] = profile * unit[k]
    share = query.tag_shares.astype(np.float64)
    if share.max(initial=0.0) > 0:
        tags = share[question] / share.max()
        found["tag_sum"] = np.log(total(tags) + 0.02)
        found["tag_accepted"] = np.log(total(tags * won) + 0.02)
        found["tag_share"] = np.log(total(tags) + 0.5) - np.log(given + 5.0)
        found["tag_recent"] = np.log(total(tags * 0.5 ** (days / 180)) + 0.02)
        found["tag_same"] = np.log(total(tags**3) + 0.02)
    by_asker = np.isin(question, query.earlier_by_asker)
    found["helped_asker"] = (total(by_asker.astype(np.float64)) > 0).astype(np.float64)
    found["accepted_by_asker"] = (total(by_asker * won) > 0).astype(np.float64)
    for least in FEW_MOST:
        few = (given <= least).astype(np.float64)
        found[f"few{least}"] = few
        found |= {f"few{least}_{name}": few * found[name] for name in FEW_OF if name in found}
    columns = np.zeros((len(NAMES), n))
    for name, column in found.items():
        columns[AT[name]] = column
    return columns


def brute_force(router: Router, query: Query, top: int) -> list[int]:
    """Everybody but the asker, scored from a full table of features and sorted."""
    people = active_users(query)
    columns = plain_columns(query)[:, query.history.codes(people)]
    scores = router.model_.score(columns.T)
    pairs = sorted(zip((-scores).tolist(), people.tolist(), strict=True))
    return [person for _, person in pairs[:top]]
