"""Where the time of a route goes, and whether it grows with events: in one process."""

from __future__ import annotations

import argparse
import cProfile
import pstats
import tempfile
import time
from pathlib import Path
from typing import Any

from _common import markdown
from _load import Site, direct

EVENTS = (0, 10_000, 30_000)
ROUTES = 60
# Stages and the functions whose time they are, those in the second list not counted.
STAGES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "vector of the text": (("meaning.py:vector",), ()),
    "words, BM25": (("corpus.py:query", "corpus.py:worth", "corpus.py:bm25"), ()),
    "tags, nearest questions, asker": (
        ("query.py:tag_shares", "query.py:nearest", "features.py:_direct"),
        (),
    ),
    "activity": (("weekly.py:moment_columns",), ()),
    "comparison with what people posted": (("features.py:add_up",), ()),
    "other features and their weighted sum": (
        ("features.py:scores",),
        ("weekly.py:moment_columns", "features.py:add_up", "features.py:_direct"),
    ),
    "rules": (("policies.py:choose", "policies.py:eligible"), ()),
    "reasons": (("reasons.py:explain",), ()),
    "a route": (("advisor.py:ask",), ()),
}  # fmt: skip


def stages(given: argparse.Namespace) -> dict[str, Any]:
    """Routes after so many events, ten events between any two; processor time by stage."""
    from atpgraph_qa import Advisor, Question
    from atpgraph_qa.service import schemas
    from atpgraph_qa.service.database import Database
    from atpgraph_qa.service.engine import Engine, now_ms
    from atpgraph_qa.service.settings import Settings

    found: dict[str, Any] = {"text": given.text, "routes": ROUTES, "runs": []}
    with tempfile.TemporaryDirectory() as place:
        made = direct(given.folder or Path(place), given.people, given.text)
        site = Site(made["questions"], made["users"])
        found["people"] = made["people"]
        database = Database(f"sqlite:///{place}/service.sqlite")
        database.migrate()
        settings = Settings().changed("store", {"folder": place}, "stages")
        settings = settings.changed("policy", {"inactive_days": 100_000.0}, "stages")
        engine = Engine(database, settings)
        engine.start_from(Advisor.load(made["model"]), "", 0)
        done = 0

        def happen(n: int) -> None:
            nonlocal done
            kinds = schemas.QuestionIn, schemas.AnswerIn, schemas.AcceptanceIn, schemas.VoteIn
            paths = "/v1/questions", "/v1/answers", "/v1/acceptances", "/v1/votes"
            told = [site.event(done + k, now_ms() / 1000) for k in range(n)]
            rows = [kinds[paths.index(path)].model_validate(body).arrival() for path, body in told]
            engine.advisor = engine._observed(engine.advisor, rows)[0]
            asked = site.rng.choice(site.users, 2 * (n // 10)).tolist()
            engine.asks.record(asked, now_ms())
            done += n

        for events in EVENTS:
            while done < events:
                happen(min(200, events - done))
            profile = cProfile.Profile(time.process_time)
            for number in range(ROUTES + 2):
                happen(10)
                question = Question(**site.question())
                if number < 2:  # kernels are loaded and caches filled
                    engine.route(question)
                else:
                    profile.runcall(engine.route, question)
            found["runs"].append({"events": events, "ms": by_stage(profile)})
        database.close()
    return found


def by_stage(profile: cProfile.Profile, routes: int = ROUTES) -> dict[str, float]:
    """Milliseconds a route, by stage."""
    spent: dict[str, float] = {}
    for (file, _, name), (_, _, _, total, _) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
        key = f"{Path(file).name}:{name}"
        spent[key] = spent.get(key, 0.0) + 1000 * total / routes
    return {
        stage: sum(spent.get(key, 0.0) for key in plus) - sum(spent.get(key, 0.0) for key in minus)
        for stage, (plus, minus) in STAGES.items()
    }


def tell_stages(found: dict[str, Any]) -> str:
    """The section of the table."""
    runs = found["runs"]
    table = markdown(
        ("ms of the processor", *(f"after {run['events']:,} events" for run in runs)),
        [(stage, *(run["ms"][stage] for run in runs)) for stage in runs[0]["ms"]],
    )
    return (
        f"{found['people']:,} people who answered, text: {found['text']}; means of "
        f"{found['routes']} routes in one process, ten events between any two, under cProfile. The "
        f"last row is more than the sum of the others by what lies between them.\n\n{table}"
    )
