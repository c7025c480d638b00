"""``atp data generate community``: a simulated Stack Exchange site as a data dump."""

from __future__ import annotations

from pathlib import Path

import atpgraph_qa
from atpgraph.cli.console import Session
from atpgraph.cli.options import Seed, opt, output

_MOST = 10_000_000


def community(
    out: Session,
    output: Path = output("Folder for the XML files."),
    users: int = opt("Number of users.", default=1000, min=2, max=_MOST),
    questions: int = opt("Number of questions.", default=5000, min=1, max=_MOST),
    topics: int = opt("Number of topics.", default=8, min=1, max=100_000),
    years: float = opt("Time the community covers.", default=6.0),
    bounties: float = opt("Share of questions with a bounty.", default=0.08),
    seed: Seed = 0,
) -> None:
    """Simulate a question-and-answer site: a data dump, and a file with the ground truth."""
    from atpgraph.util.random import generator

    rng = generator(seed)
    made = atpgraph_qa.simulate_community(
        users, questions, n_topics=topics, years=years, bounty_share=bounties, random_state=rng
    )
    summary = atpgraph_qa.write_dump(made, output, random_state=rng)
    facts = {"output": output, "seed": seed, "seconds": out.seconds}
    out.result(
        {"model": "community", **summary, **facts},
        f"{output}: {summary['users']:,} users, {summary['questions']:,} questions, "
        f"{summary['answers']:,} answers, {summary['bounties']:,} bounties in "
        f"{summary['topics']} topics",
        f"next: atp qa ingest {output} -o SITE",
    )
