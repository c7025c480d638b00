"""``atp qa difficulty``, ``evaluate`` and ``load``: compare methods, and what policies cost."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import atpgraph_qa
from atpgraph.cli.console import Session, table
from atpgraph.cli.options import Report, Seed, Top, arg, names, opt, output, values
from atpgraph.errors import InputError

SitePath = Annotated[Path, arg("Folder made by 'atp qa ingest'.")]
Ega = Annotated[
    Literal["none", "consecutive", "all-pairs"],
    opt("Which questions of the same asker get an edge, earlier to later."),
]
Tau = Annotated[float, opt("With all-pairs: minimum number of days between two linked questions.")]
TestShare = Annotated[float, opt("Share of the questions to test on: the latest ones.")]
Text = Annotated[
    str,
    opt(
        "How questions are compared: by words (bm25), by vectors of the extra 'dense', or by a "
        "folder with an ONNX file and tokenizer.json; auto takes the best that is installed.",
        metavar="bm25|static|dense|PATH|auto",
    ),
]


@dataclass(frozen=True)
class Limits:
    """Rules about who may be asked, as typed."""

    inactive_days: Annotated[
        float | None, opt("Exclude users who have not answered for this many days.")
    ] = None
    per_day: Annotated[int | None, opt("Ask each person at most this often in 24 hours.")] = None
    per_week: Annotated[int | None, opt("Ask each person at most this often in 7 days.")] = None
    newcomers: Annotated[float, opt("Share of places for newcomers.", min=0, max=1)] = 0.0

    def policy(self, opt_out: str = "", spread: float = 0.0) -> atpgraph_qa.Policy:
        """Return the policy with these rules."""
        try:
            never = frozenset(int(number) for number in names(opt_out))
        except ValueError:
            never = frozenset([-1])
        if not all(0 <= user < 2**63 for user in never):
            raise InputError(f"--opt-out takes user ids, not {opt_out!r}.")
        limits = self.inactive_days, self.per_day, self.per_week
        return atpgraph_qa.Policy(never, *limits, spread, self.newcomers)


def difficulty(
    out: Session,
    site: SitePath,
    evaluate: bool = opt("Compare methods with bounties.", "--evaluate"),
    methods: str | None = opt("Names separated by commas.", show_default="all"),
    ega: Ega = "all-pairs",
    tau: Tau = 30.0,
    halves: Literal["random", "time"] = opt(
        "How questions with a bounty are split into validation and test.", default="random"
    ),
    bootstrap: int = opt("Number of resamples.", default=1000, min=1),
    min_tag: int = opt("Minimum number of questions of a tag in the tag table.", default=20, min=2),
    output: Path | None = output("Write the difficulty of all questions (.csv or .parquet)."),
    model: Path | None = opt("Model of 'atp qa train'.", show_default="train one"),
    top: Top = 10,
    report: Report = None,
    seed: Seed = 0,
) -> None:
    """List the hardest and easiest questions, or with --evaluate compare methods."""
    from atpgraph_qa.advisor.model_folder import ModelFolder
    from atpgraph_qa.data.store import check_columns_file, write_columns
    from atpgraph_qa.difficulty.methods import COLUMNS

    if output is not None:
        if evaluate:
            raise InputError("--output writes a list of questions; --evaluate makes none.")
        check_columns_file(output)
    opened = atpgraph_qa.Site(site)
    options: dict[str, Any] = {
        "methods": None if methods is None else names(methods),
        "ega": ega,
        "tau_days": tau,
        "random_state": seed,
        "expertise": None if model is None else ModelFolder.open(model).expertise_of(opened),
    }
    if not evaluate:
        ids, columns = atpgraph_qa.question_scores(opened, **options)
        if output is not None:
            write_columns(output, {"question": ids, **columns})
        lists = {name: column.tolist() for name, column in columns.items()}
        listed = {"questions": ids.tolist(), "methods": lists}
        out.result(listed, *_extremes(ids, columns, top), report=report)
        return
    found = atpgraph_qa.evaluate_site(
        opened, halves_by=halves, n_bootstrap=bootstrap, min_tag_questions=min_tag, **options
    )
    shown = [table(COLUMNS, rows, title) for title, rows in reversed(found.tables())]
    if found.tags:
        tags = [
            (row.tag, row.questions, row.pairs, *(each.mean for each in row.methods.values()))
            for row in found.tags
        ]
        shown.append(table(("tag", "questions", "pairs", *found.methods), tags, "by tag"))
    out.result(found.to_dict(), *shown, report=report)


def _extremes(ids: Any, columns: dict[str, Any], top: int) -> list[Any]:
    """Return the hardest and the easiest questions by each method."""
    import numpy as np

    shown: list[Any] = []
    for name, scores in columns.items():
        known = np.flatnonzero(~np.isnan(scores))
        order = known[np.lexsort((ids[known], -scores[known]))]
        for title, places in (("hardest", order[:top]), ("easiest", order[::-1][:top])):
            rows = [(str(ids[place]), float(scores[place])) for place in places.tolist()]
            shown.append(table(("question", name), rows, f"{title} by {name}"))
    return shown


def evaluate(
    out: Session,
    site: SitePath,
    protocol: str = opt("paper, time, or names of individual protocols.", default="paper,time"),
    methods: str = opt(
        "Names separated by commas, 'quick' (all but doc2vec and coldroute), or 'all'.",
        default="quick",
    ),
    test_share: TestShare = 0.2,
    split: datetime.datetime | None = opt(
        "Date of the split, instead of --test-share.", formats=["%Y-%m-%d"]
    ),
    active_days: float | None = opt(
        "Rank only people who answered within this many days.", show_default="ever"
    ),
    truth: Path | None = opt("truth.npz of a simulated community; adds an oracle."),
    text: Text = "auto",
    report: Report = None,
    seed: Seed = 0,
) -> None:
    """Compare ways of choosing who should answer a question."""
    from atpgraph_qa.evaluation.protocols import Split
    from atpgraph_qa.reports import render

    moment = int(split.replace(tzinfo=datetime.UTC).timestamp() * 1000) if split else None
    found = atpgraph_qa.evaluate_routing(
        atpgraph_qa.Site(site),
        protocols=names(protocol),
        methods=None if methods == "quick" else names(methods),
        split=Split(test_share, moment, active_days=active_days),
        truth=truth,
        text=text,
        random_state=seed,
    )
    for sentence in found.skipped.values():
        out.note(sentence)
    payload = found.to_dict()
    shown = []
    for name, result in payload.items():
        shown.append(_methods(name, result))
        if not name.startswith("paper"):
            shown.append(_by_earlier_answers(result))
    out.result(payload, *shown, report=report, render=lambda command: render(found, command))


def _ordered(result: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the methods with their rows, best first."""
    return sorted(result["methods"].items(), key=lambda item: -(item[1]["mrr"]["mean"] or 0))


_SHOWN = {
    "answered@1": "answered@1",
    "answered@3": "@3",
    "answered@5": "@5",
    "answered@10": "@10",
    "p@1": "P@1",
    "accuracy": "accuracy",
}


def _methods(name: str, result: dict[str, Any]) -> Any:
    """Return MRR, and how often somebody among the first 1, 3, 5 and 10 answered at all."""
    rows = []
    for method, row in _ordered(result):
        above = row.get("router_above", {})
        mrr = (row["mrr"][end] for end in ("mean", "low", "high"))
        others = (row[metric] for metric in _SHOWN)
        rows.append((method, *mrr, *others, above.get("mean"), above.get("p")))
    title = (
        f"{name}: {result['questions']:,} questions, "
        f"{result['candidates_mean']:.1f} candidates each, {result['reachable']:,} reachable"
    )
    header = ("method", "MRR", "low", "high", *_SHOWN.values(), "router above by", "p")
    return table(header, rows, title)


def _by_earlier_answers(result: dict[str, Any]) -> Any:
    """Return MRR by how many answers the accepted answerer had given before."""
    groups = result["earlier_answers"]
    header = ["method"]
    for group in groups:
        least, most = group["least"], group["most"]
        ends = f"{least}+" if most is None else str(least) if least == most else f"{least}-{most}"
        header.append(f"{ends} ({group['questions']:,})")
    rows = [(method, *(group["mrr"][method] for group in groups)) for method, _ in _ordered(result)]
    return table(header, rows, "MRR by earlier answers of the accepted answerer (questions)")


_TRIED = {
    "per_day": "at most {} a day",
    "per_week": "at most {} a week",
    "inactive_days": "active in {:g} days",
    "newcomers": "{:.0%} newcomers",
}


def load(
    out: Session,
    site: SitePath,
    limits: Limits,
    spread: str = opt("Values to try, separated by commas.", default="0.5,1,2"),
    top: Top = 5,
    test_share: TestShare = 0.2,
    report: Report = None,
    seed: Seed = 0,
) -> None:
    """Measure how much MRR load spreading, limits and newcomers cost on the last questions.

    Each limit is tried by itself.
    """
    from atpgraph_qa.evaluation.load import COLUMNS, load_cost
    from atpgraph_qa.evaluation.protocols import Split

    tried = {"no policy": Limits().policy()}
    for strength in values("--spread", spread, float, "numbers"):
        tried[f"spread {strength:g}"] = Limits().policy(spread=strength)
    for name, text in _TRIED.items():
        limit = getattr(limits, name)
        if limit != getattr(Limits(), name):
            tried[text.format(limit)] = Limits(**{name: limit}).policy()
    found = load_cost(
        atpgraph_qa.Site(site), tried, top=top, split=Split(test_share), random_state=seed
    )
    title = f"{found.n_questions:,} questions, {top} people asked each"
    out.result(found.to_dict(), table(COLUMNS, found.rows(), title), report=report)
