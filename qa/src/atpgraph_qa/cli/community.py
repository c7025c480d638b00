"""``atp data generate community``: a simulated Stack Exchange site as a data dump."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

from atpgraph.cli.console import Session
from atpgraph.cli.options import Seed, opt, output

_MOST = 10_000_000


def community(
    out: Session,
    output: Annotated[Path, output("Folder for the XML files.")],
    users: Annotated[int, opt("Number of users.", min=2, max=_MOST)] = 1000,
    questions: Annotated[int, opt("Number of questions.", min=1, max=_MOST)] = 5000,
    topics: Annotated[int, opt("Number of topics.", min=1, max=100_000)] = 8,
    years: Annotated[float, opt("Time the community covers.")] = 6.0,
    bounties: Annotated[float, opt("Share of questions with a bounty.")] = 0.08,
    seed: Seed = 0,
) -> None:
    """Simulate a question-and-answer site: a data dump, and a file with the ground truth."""
    from atpgraph.util.random import generator
    from atpgraph_qa.simulation.community import simulate_community
    from atpgraph_qa.simulation.dump import write_dump

    started = time.perf_counter()
    rng = generator(seed)
    made = simulate_community(
        users, questions, n_topics=topics, years=years, bounty_share=bounties, random_state=rng
    )
    summary = write_dump(made, output, random_state=rng)
    payload = {"model": "community", **summary, "output": output, "seed": seed}
    payload["seconds"] = round(time.perf_counter() - started, 3)
    out.result(
        payload,
        f"{output}: {summary['users']:,} users, {summary['questions']:,} questions, "
        f"{summary['answers']:,} answers, {summary['bounties']:,} bounties in "
        f"{summary['topics']} topics",
        f"next: atp qa ingest {output} -o SITE",
    )
