"""What a competition graph can know of difficulty, and what text and askers add.

    python benchmarks/difficulty.py SITE [--repeats 20] [--test NAMES] [--output FILE]

First the ceiling: once cycles are broken, a path says that one question is harder than another, and
everything without a path is left open. How many pairs of questions with different bounties does
that exact order compare, and how often is it right? Then a search among signals from titles and
askers, one by one beside those of ``signals-fitted`` and ``atp-fitted``, by two-fold
cross-validation inside the validation half; the same halves for all sets. ``--test NAMES`` adds
those signals and judges the test half with weights of the validation half, once all is chosen.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from _common import Report, arguments, markdown

from atpgraph import Reachability, break_cycles
from atpgraph.util.arrays import Float64Array, Int8Array, Int64Array
from atpgraph_qa import Expertise, Scores, Site, bounty_truth, halves, pairwise_accuracy
from atpgraph_qa.competition import competition_graph
from atpgraph_qa.data.site import NOBODY
from atpgraph_qa.difficulty.accuracy import BountyTruth
from atpgraph_qa.difficulty.signal_model import (
    atp_signals,
    fit_weights,
    signal_matrix,
    simple_signals,
)
from atpgraph_qa.timeline.records import Records

NEAREST = 10


@dataclass(frozen=True, eq=False)
class PartialOrder:
    """Compares questions where a path leads from one to the other, and only there."""

    above: Int8Array

    @classmethod
    def of(cls, site: Site, truth: BountyTruth, ega: str, seed: int) -> PartialOrder:
        """Paths between the questions compared, in the graph without its cycles."""
        graph = competition_graph(site, ega=ega)  # type: ignore[arg-type]
        dag = break_cycles(graph.graph, random_state=seed).dag
        reach = Reachability(dag, index=True, n_jobs=1)
        nodes = graph.question_nodes(site.questions.id[truth.question])
        known = np.flatnonzero(nodes != NOBODY)
        labels = np.asarray(dag.labels)[nodes[known]]
        above = np.zeros((len(truth), len(truth)), dtype=np.int8)
        for row, label in zip(known.tolist(), labels, strict=True):
            harder = np.asarray(reach.reaches(np.full(len(labels), label), labels))
            above[known[harder], row] += 1
            above[row, known[harder]] -= 1
        return cls(above)

    def harder(self, rows: Int64Array) -> Int8Array:
        """See :class:`~atpgraph_qa.difficulty.accuracy.Comparator`."""
        return self.above[rows]


def more_signals(site: Site) -> dict[str, Float64Array]:
    """What titles and askers say of every question, as of the moment it was asked."""
    records = Records.of(site, "static")
    titles = records.titles
    counts = records.corpus.rows
    rarity = np.log1p(counts.shape[0] / (1.0 + np.bincount(counts.indices, minlength=1)))
    words = np.maximum(np.diff(counts.indptr), 1)
    per_word = np.repeat(np.arange(len(titles)), np.diff(counts.indptr))
    idf = np.bincount(per_word, rarity[counts.indices], minlength=len(titles))
    near, crowd = nearest(records)
    asker, asked_ms = records.questions.asker, records.questions.asked_ms
    given, won = np.full((2, len(titles)), np.nan)
    tenure = np.full(len(titles), np.nan)
    accepted = np.zeros(len(records.answers), dtype=np.bool_)
    accepted[records.acceptances.answer] = True
    first: dict[int, int] = {}
    for question, person in enumerate(asker.tolist()):
        if person < 0:
            continue
        mine = records.by_owner.find([person], records.answers.owner)
        mine = mine[records.answers.given_ms[mine] < asked_ms[question]]
        given[question], won[question] = len(mine), accepted[mine].sum()
        start = min(first.setdefault(person, int(asked_ms[question])), *_first(records, mine))
        tenure[question] = asked_ms[question] - start
    return {
        "title-length": np.array([float(len(title)) for title in titles]),
        "title-words": words.astype(np.float64),
        "word-rarity": idf / words,
        "nearest-closeness": near,
        "nearest-answers": crowd,
        "asker-answers": given,
        "asker-accepted": won,
        "asker-tenure": tenure,
        "hour": (asked_ms // 3_600_000 % 24).astype(np.float64),
    }


def _first(records: Records, answers: Int64Array) -> list[int]:
    return [int(records.answers.given_ms[answers[0]])] if len(answers) else [2**62]


def nearest(records: Records) -> tuple[Float64Array, Float64Array]:
    """Mean closeness of the nearest earlier questions, and how many answers those have."""
    assert records.meaning is not None
    vectors = records.meaning.vectors.astype(np.float32) / 127
    answers = np.bincount(records.answers.question, minlength=len(vectors)).astype(np.float64)
    near, crowd = np.full((2, len(vectors)), np.nan)
    for start in range(0, len(vectors), 512):
        part = vectors[start : start + 512] @ vectors[: start + 512].T
        for row in range(len(part)):
            place = start + row
            if place >= NEAREST:
                best = np.argpartition(-part[row, :place], NEAREST - 1)[:NEAREST]
                near[place] = part[row, best].mean()
                crowd[place] = answers[best].mean()
    return near, crowd


def cross_validated(
    matrix: Float64Array, truth: BountyTruth, repeats: int, seed: int
) -> Float64Array:
    """Accuracy of each half with the weights of the other, for every random cut in two."""
    rng, found = np.random.default_rng(seed), []
    for _ in range(repeats):
        order = rng.permutation(len(truth))
        parts = np.sort(order[: len(truth) // 2]), np.sort(order[len(truth) // 2 :])
        for learn, judge in (parts, parts[::-1]):
            weights = fit_weights(matrix[learn], truth.amount[learn], seed)
            values = Scores(matrix[judge] @ weights)
            found.append(pairwise_accuracy(truth.take(judge), values, n_bootstrap=1).mean)
    return np.array(found)


def main() -> None:
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("site", type=Path)
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--test", default="", help="signals to judge on the test half, once")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    test = f" --test {options.test}" if options.test else ""
    report = Report(
        f"What can be known of difficulty on {options.site.name}",
        f"python benchmarks/difficulty.py {options.site.name} --repeats {options.repeats}{test}",
        options.output,
    )
    site = Site(options.site)
    truth = bounty_truth(site)
    validation, test_half = halves(truth, random_state=options.seed)
    report.add(
        f"{len(truth):,} questions with a bounty, {truth.n_pairs():,} pairs with different ones."
    )
    rows = []
    for ega in ("none", "consecutive", "all-pairs"):
        order = PartialOrder.of(site, truth, ega, options.seed)
        found = pairwise_accuracy(truth, order, random_state=options.seed)
        compared = 1 - found.ties / found.pairs
        rows.append((ega, f"{compared:.1%}", f"{found.skip_ties:.3f}", f"{found.mean:.3f}"))
    columns = ("expertise gain", "pairs compared", "right of these", "all pairs, open ones as ½")
    report.add("## The ceiling: the exact order of the competition graph")
    report.add(markdown(columns, rows))
    simple = simple_signals(site)
    atp = atp_signals(site, Expertise.fit(site, random_state=options.seed))
    more = more_signals(site)
    part = truth.take(np.flatnonzero(validation))
    sets = {"signals-fitted": simple, "atp-fitted": simple | atp}
    sets |= {f"signals-fitted + {name}": simple | {name: values} for name, values in more.items()}
    sets["signals-fitted + all of them"] = simple | more
    sets["atp-fitted + all of them"] = simple | atp | more
    base: Float64Array | None = None
    rows = []
    for name, signals in sets.items():
        matrix = signal_matrix(signals)[part.question]
        found_here = cross_validated(matrix, part, options.repeats, options.seed)
        base = found_here if base is None else base
        gap = found_here - base
        spread = gap.std(ddof=1)
        rows.append((name, f"{found_here.mean():.4f}", f"{gap.mean():+.4f} ± {spread:.4f}"))
    report.add("## Text and askers, validation half")
    report.add(
        f"{options.repeats} random cuts in two; the second column is the mean difference to "
        "signals-fitted on the same cuts and its standard deviation over them."
    )
    report.add(markdown(("signals", "accuracy", "more than signals-fitted"), rows))
    if options.test:
        chosen = {name: more[name] for name in options.test.split(",")}
        rows = []
        for name, signals in (("signals-fitted", simple), ("with the chosen", simple | chosen)):
            matrix = signal_matrix(signals)[truth.question]
            weights = fit_weights(matrix[validation], truth.amount[validation], options.seed)
            judged = pairwise_accuracy(truth.take(test_half), Scores(matrix[test_half] @ weights))
            rows.append((name, f"{judged.mean:.4f} ({judged.low:.3f} to {judged.high:.3f})"))
        report.add(f"## Test half, once: {options.test}")
        report.add(markdown(("signals", "accuracy"), rows))
    report.save()


if __name__ == "__main__":
    main()
