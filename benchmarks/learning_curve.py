"""How the router does with few labels, next to its shipped weights and to what learns nothing.

    python benchmarks/learning_curve.py NAME=SITE [NAME=SITE ...] [--text static] [--output FILE]

Everything is inside the training period: of the questions before the test period of
``atp qa evaluate``, the last fifth is ranked (protocol ``time-all``) by routers that learned from
the last 0, 25, 50, … labeled questions before it. No test question is looked at.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from _common import Report, markdown

from atpgraph.evaluation.resampling import paired_bootstrap
from atpgraph_qa import Site
from atpgraph_qa.baselines.simple import RecentActivity, TopicActivity
from atpgraph_qa.evaluation.evaluation import run
from atpgraph_qa.evaluation.protocols import Split, make_protocol
from atpgraph_qa.ranking.router import Router
from atpgraph_qa.ranking.training import TrainingPlan
from atpgraph_qa.timeline.records import Records

LABELS = (0, 25, 50, 100, 200, 400, 800)


def curve(site: Path, text: str) -> tuple[int, list[tuple[object, ...]]]:
    """Return the number of questions and one row per number of labels."""
    records = Records.of(Site(site), text)
    before = records.until(Split().moment(records.questions.asked_ms))
    protocol = make_protocol(before, "time-all")
    routers = [
        type(f"Router{labels}", (Router,), {"name": f"{labels}"})(
            "all", plan=TrainingPlan(questions=labels)
        )
        for labels in LABELS
    ]
    result = run(protocol, [*routers, TopicActivity(), RecentActivity()])
    mrr = {name: ranks.reciprocal for name, ranks in result.ranks.items()}
    rows: list[tuple[object, ...]] = []
    seen = -1
    for router in routers:
        if router.questions_ == seen:
            break
        seen = router.questions_
        cells = [f"{seen} labels", f"{mrr[router.name].mean():.3f}"]
        for other in ("0", TopicActivity.name, RecentActivity.name):
            gap = paired_bootstrap(mrr[router.name], mrr[other]).difference
            cells.append(f"{gap.mean:+.3f} ({gap.low:+.3f} to {gap.high:+.3f})")
        start = "prior" if router.from_prior_ else "zero"
        rows.append((*cells, f"{start}, {router.penalty_:g}"))
    rows += [(name, f"{mrr[name].mean():.3f}", "", "", "", "") for name in list(mrr)[-2:]]
    return len(result.candidates), rows


def main() -> None:
    """Print the curves of all sites."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sites", nargs="+", help="NAME=FOLDER made by 'atp qa ingest'")
    parser.add_argument("--text", default="static")
    parser.add_argument("--output", type=Path)
    options = parser.parse_args()
    shown = " ".join(f"{n}={Path(f).name}" for n, _, f in (s.partition("=") for s in options.sites))
    command = f"python benchmarks/learning_curve.py {shown} --text {options.text}"
    report = Report("Learning curves of the router", command, options.output)
    for named in options.sites:
        name, _, folder = named.partition("=")
        questions, rows = curve(Path(folder), options.text)
        header = ("", "MRR", "over the prior", "over topic-activity", "over recent-activity", "fit")
        report.add(f"## {name}, {questions} questions")
        report.add(markdown(header, rows))
    report.save()


if __name__ == "__main__":
    main()
