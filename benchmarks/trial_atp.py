"""ATP's trial as a router: does a hierarchy of people say whom to ask?

    python benchmarks/trial_atp.py SITE [SITE …] --output benchmarks/results/trial-atp.md

Only the training period of each site is used (the first 80 % of its questions); its last questions
with an accepted answer judge, the ones before them teach. ATP gets the best graph we know of:

* people who answered the same question play matches, all against all; more votes win, the accepted
  answer counts as two votes more; a match weighs ln(1 + difference), halved every two years;
* an edge goes from who lost more to who won more;
* one such graph for the site and one for each topic (the commonest tags; a question belongs to the
  rarest of them that it has); people are scored by both, the topic counting by the matches they
  played in it.

Level, TrueSkill and Elo (which plays the same weighted matches by date) are scored in the same way.
Two judgements: each as a row of its own, ranking the people who answered, against acceptance (MRR)
and against votes (NDCG); and each as a feature of the router with 0 to 200 labelled questions,
ranking everybody, against the router without it. The router starts from its prior weights, which
were learnt on travel: only the difference counts there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from _common import Report, arguments, markdown

from atpgraph import ATP, DiGraph
from atpgraph.cycles import trueskill
from atpgraph.evaluation.metrics import rank_of
from atpgraph.evaluation.resampling import bootstrap, paired_bootstrap
from atpgraph.util.conditional_logit import Choices, fit_logit
from atpgraph_qa import Site
from atpgraph_qa.data.site import DAY_MS
from atpgraph_qa.evaluation.protocols import make_protocol
from atpgraph_qa.ranking.features import AT, Features
from atpgraph_qa.ranking.names import NAMES
from atpgraph_qa.ranking.router import prior_weights
from atpgraph_qa.ranking.training import largest
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.query import Query
from atpgraph_qa.timeline.records import Records

TOPICS, HALF_LIFE_DAYS, SHRINK = 8, 730.0, 5.0
JUDGES, OWN_JUDGES, LABELS, DRAWS, PENALTY = 300, 1500, (0, 25, 50, 100, 200), 4, 30.0
PURPOSES = ("links", "paper", "reachability")
PROMISING = ("fading_15", "fading_60", "text_near", "text_recent", "tag_recent", "accepted")


@dataclass(frozen=True, eq=False)
class Matches:
    """Who lost to whom, by date, and what it weighs."""

    loser: np.ndarray
    winner: np.ndarray
    weight: np.ndarray
    topic: np.ndarray

    def of(self, topic: int) -> Matches:
        keep = self.topic == topic
        return Matches(self.loser[keep], self.winner[keep], self.weight[keep], self.topic[keep])


def topics_of(history: History) -> np.ndarray:
    """The topic of every question, −1 for none."""
    tags = history.tags
    uses = np.bincount(tags.tags, minlength=len(tags.names))
    common = np.argsort(-uses, kind="stable")[:TOPICS]
    topic = np.full(history.n_questions, -1)
    for place, tag in enumerate(common.tolist()):  # the rarest one comes last and stays
        topic[history.tagged(tag)] = place
    return topic


def matches_of(history: History) -> Matches:
    """All pairs of answers to the same question by different people, with a winner."""
    order = np.argsort(history.answers.question, kind="stable")
    question, owner = history.answers.question[order], history.answers.owner[order]
    votes = (history.answer_votes + 2.0 * history.is_accepted)[order]
    first, second = [], []
    for gap in range(1, 30):
        pairs = np.flatnonzero(question[gap:] == question[:-gap])
        if not len(pairs):
            break
        first.append(pairs)
        second.append(pairs + gap)
    a, b = np.concatenate(first), np.concatenate(second)
    keep = (votes[a] != votes[b]) & (owner[a] >= 0) & (owner[b] >= 0) & (owner[a] != owner[b])
    a, b = a[keep], b[keep]
    low, high = np.where(votes[a] < votes[b], a, b), np.where(votes[a] < votes[b], b, a)
    age = (history.now - history.questions.asked_ms[question[low]]) / DAY_MS
    weight = np.log1p(votes[high] - votes[low]) * np.exp2(-age / HALF_LIFE_DAYS)
    by_date = np.argsort(question[low], kind="stable")
    low, high, weight = low[by_date], high[by_date], weight[by_date]
    return Matches(owner[low], owner[high], weight, topics_of(history)[question[low]])


def graph_of(matches: Matches, n: int) -> tuple[DiGraph, np.ndarray]:
    """An edge from who lost more to who won more; the people of its nodes."""
    pair = np.minimum(matches.loser, matches.winner) * n + np.maximum(matches.loser, matches.winner)
    signed = np.where(matches.loser < matches.winner, matches.weight, -matches.weight)
    pairs, place = np.unique(pair, return_inverse=True)
    net = np.bincount(place, signed)
    pairs, net = pairs[net != 0], net[net != 0]
    small, large = pairs // n, pairs % n
    people, codes = np.unique(np.concatenate([small, large]), return_inverse=True)
    small, large = codes[: len(small)], codes[len(small) :]
    source, target = np.where(net > 0, small, large), np.where(net > 0, large, small)
    return DiGraph.from_codes(source, target, len(people)), people


def elo(matches: Matches, n: int) -> np.ndarray:
    rating = np.zeros(n)
    for a, b, w in zip(
        matches.loser.tolist(), matches.winner.tolist(), matches.weight.tolist(), strict=True
    ):
        step = 0.2 * w / (1.0 + np.exp(rating[b] - rating[a]))
        rating[b] += step
        rating[a] -= step
    return rating


def by_graph(score: Callable[[DiGraph], np.ndarray]) -> Callable[[Matches, int], np.ndarray]:
    def all_people(matches: Matches, n: int) -> np.ndarray:
        result = np.zeros(n)
        graph, people = graph_of(matches, n)
        if graph.n_edges:
            values = score(graph)
            result[people] = (values - values.mean()) / (values.std() + 1e-9)
        return result

    return all_people


def atp_score(purpose: str) -> Callable[[DiGraph], np.ndarray]:
    def score(graph: DiGraph) -> np.ndarray:
        k = min(16, max(2, graph.n_nodes // 4))
        model = ATP(k, purpose=purpose, random_state=0, n_jobs=1).fit(graph)
        source, target = model.source_.astype(float), model.target_.astype(float)
        return target @ source.mean(axis=0) - source @ target.mean(axis=0)

    return score


def levels(graph: DiGraph) -> np.ndarray:
    return np.log1p(
        ATP(2, purpose="paper", zero_weight="auto", max_iter=1, n_jobs=1)
        .fit(graph)
        .levels_.astype(float)
    )


SCORES: dict[str, Callable[[Matches, int], np.ndarray]] = {
    **{f"atp {purpose}": by_graph(atp_score(purpose)) for purpose in PURPOSES},
    "level": by_graph(levels),
    "trueskill": by_graph(lambda graph: trueskill(graph, random_state=0).score),
    "elo": elo,
}


@dataclass(frozen=True, eq=False)
class Ratings:
    """Scores of everybody, for the site and by topic."""

    whole: np.ndarray
    local: np.ndarray
    played: np.ndarray

    @classmethod
    def of(cls, matches: Matches, n: int, score: Callable[[Matches, int], np.ndarray]) -> Ratings:
        parts = [matches.of(topic) for topic in range(TOPICS)]
        local = np.array([score(part, n) if len(part.loser) else np.zeros(n) for part in parts])
        played = np.array([np.bincount(np.append(p.loser, p.winner), minlength=n) for p in parts])
        return cls(score(matches, n), local, played)

    def at(self, topic: int) -> np.ndarray:
        if topic < 0:
            return self.whole
        share = self.played[topic] / (self.played[topic] + SHRINK)
        return share * self.local[topic] + (1 - share) * self.whole


def ndcg(gain: np.ndarray, score: np.ndarray) -> float:
    """Of a ranking by `score`, equals in the mean order."""
    order = np.lexsort((gain, -score))
    back = np.lexsort((-gain, -score))
    discount = 1.0 / np.log2(np.arange(len(gain)) + 2.0)
    best = float(np.sort(gain)[::-1] @ discount)
    return float(0.5 * (gain[order] + gain[back]) @ discount / best) if best else 1.0


def judge_rows(
    history: History, past: History, ratings: dict[str, Ratings], topic: np.ndarray
) -> list[tuple[object, ...]]:
    """Each score as a row of its own over the people who answered."""
    best = history.best_answer
    positions = np.flatnonzero((best >= 0) & (np.arange(len(best)) >= past.n_questions))
    mrr: dict[str, list[float]] = {name: [] for name in (*ratings, "accepted answers")}
    gains: dict[str, list[float]] = {name: [] for name in mrr}
    for position in positions[-OWN_JUDGES:].tolist():
        answers = history.answers_to(np.array([position]))
        owner = history.answers.owner[answers]
        keep = (owner >= 0) & (owner != history.questions.asker[position])
        people, first = np.unique(owner[keep], return_index=True)
        right = int(history.answers.owner[best[position]])
        if len(people) < 2 or right not in people:
            continue
        votes = np.maximum(history.answer_votes[answers[keep]][first], 0.0)
        for name in mrr:
            values = (
                past.n_won if name == "accepted answers" else ratings[name].at(int(topic[position]))
            )
            mrr[name].append(1.0 / rank_of(values[people], int(np.searchsorted(people, right))))
            gains[name].append(ndcg(votes, values[people]))
    rows: list[tuple[object, ...]] = []
    for name in mrr:
        one, two = bootstrap(np.array(mrr[name])), bootstrap(np.array(gains[name]))
        gap = paired_bootstrap(np.array(mrr[name]), np.array(mrr["elo"])).difference
        rows.append((name, len(mrr[name]), _interval(one), _signed(gap), _interval(two)))
    return rows


def judge_features(
    history: History, past: History, ratings: dict[str, Ratings], topic: np.ndarray
) -> list[tuple[object, ...]]:
    """Each score as a feature of the router, by number of labelled questions."""
    best = history.best_answer
    resolved = np.flatnonzero(best >= 0)
    teach = resolved[resolved < past.n_questions][-LABELS[-1] * 2 :]
    judge = resolved[resolved >= past.n_questions]
    judge = judge[np.linspace(0, len(judge) - 1, min(JUDGES, len(judge))).astype(int)]
    rng = np.random.default_rng(0)

    def extra(position: int, people: np.ndarray) -> np.ndarray:
        return np.array([r.at(int(topic[position]))[people] for r in ratings.values()]).T

    def example(position: int, whole: bool) -> tuple[np.ndarray, int, np.ndarray] | None:
        query = Query.again(history.records, position)
        asker, right = history.questions.asker[position], int(history.answers.owner[best[position]])
        active = np.flatnonzero(query.history.n_given > 0)
        active = active[active != asker]
        place = int(np.searchsorted(active, right))
        if right < 0 or place == len(active) or active[place] != right:
            return None
        people, offset = active, np.zeros(len(active))
        if not whole:
            columns = Features(query).columns(active)
            hard = [largest(columns[AT[name]], 25) for name in PROMISING]
            sure = np.unique(np.concatenate([*hard, [place]]))
            rest = np.setdiff1d(np.arange(len(active)), sure)
            drawn = rng.choice(rest, min(40, len(rest)), replace=False)
            stands = np.log(max(len(rest), 1) / max(len(drawn), 1))
            people = active[np.concatenate([sure, drawn])]
            offset = np.concatenate([np.zeros(len(sure)), np.full(len(drawn), stands)])
        rows = Features(query).columns(people).T
        x = np.hstack([rows, extra(position, people)]).astype(np.float32)
        return x, int(np.flatnonzero(people == right)[0]), offset

    labelled = [made for q in teach.tolist() if (made := example(q, False))]
    judged = [made for q in judge.tolist() if (made := example(q, True))]
    width = len(NAMES)
    sets = {"without": [], **{name: [width + k] for k, name in enumerate(ratings)}}
    rows: list[tuple[object, ...]] = []
    prior = np.concatenate([prior_weights("all"), np.zeros(len(ratings))])
    for count in LABELS:
        reciprocal = {name: np.zeros(len(judged)) for name in sets}
        draws = DRAWS if count else 1
        for _ in range(draws):
            chosen = rng.choice(len(labelled), min(count, len(labelled)), replace=False)
            choices = _joined([labelled[k] for k in np.sort(chosen)], width + len(ratings))
            for name, columns in sets.items():
                use = np.zeros(width + len(ratings), dtype=np.bool_)
                use[:width] = True
                use[columns] = True
                weight = fit_logit(choices, PENALTY, use, prior).raw_weight
                for place, (x, right, _) in enumerate(judged):
                    reciprocal[name][place] += 1.0 / rank_of(x @ weight, right) / draws
        for name in sets:
            gap = paired_bootstrap(reciprocal[name], reciprocal["without"]).difference
            rows.append(
                (
                    count,
                    name,
                    _interval(bootstrap(reciprocal[name])),
                    "" if name == "without" else _signed(gap),
                )
            )
    return rows


def _joined(examples: list[tuple[np.ndarray, int, np.ndarray]], width: int) -> Choices:
    sizes = np.array([len(x) for x, _, _ in examples], dtype=np.int64)
    first = np.cumsum(sizes) - sizes
    return Choices(
        np.concatenate([np.zeros((0, width)), *(x for x, _, _ in examples)]).astype(float),
        np.repeat(np.arange(len(examples)), sizes),
        first + np.array([right for _, right, _ in examples], dtype=np.int64),
        np.concatenate([np.zeros(0), *(offset for _, _, offset in examples)]),
    )


def _interval(value: object) -> str:
    return f"{value.mean:.4f} ({value.low:.4f}–{value.high:.4f})"  # type: ignore[attr-defined]


def _signed(value: object) -> str:
    return f"{value.mean:+.4f} ({value.low:+.4f} to {value.high:+.4f})"  # type: ignore[attr-defined]


def main() -> None:
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("sites", nargs="+", type=Path, metavar="SITE")
    options = parser.parse_args()
    report = Report(
        "ATP's trial as a router", "python benchmarks/trial_atp.py SITE …", options.output
    )
    for path in options.sites:
        records = Records.of(Site(path))
        training = make_protocol(records, "time-all").training
        records = records.until(training.now)
        history = History(records, training.now)
        cut = int(records.questions.asked_ms[round(0.75 * len(records.questions))])
        past = History(records, cut)
        matches = matches_of(past)
        ratings = {name: Ratings.of(matches, past.n_users, s) for name, s in SCORES.items()}
        topic = topics_of(history)
        report.add(
            f"## {path.name}\n\n{len(history.questions):,} questions of the training period; "
            f"{len(matches.loser):,} matches before the last quarter of them."
        )
        header = ("row", "questions", "MRR, own answerers", "above Elo by", "NDCG of votes")
        report.add(markdown(header, judge_rows(history, past, ratings, topic)))
        header = ("labels", "router with", "MRR, everybody", "above the router without by")
        report.add(markdown(header, judge_features(history, past, ratings, topic)))
    report.save()


if __name__ == "__main__":
    main()
