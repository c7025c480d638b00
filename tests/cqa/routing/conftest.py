"""A small simulated community, ingested once, and what is trained on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from atpgraph.cqa import Advisor, Site, ingest, simulate_community, write_dump
from atpgraph.cqa.routing.model.router import Router
from atpgraph.cqa.routing.model.training import TrainingPlan
from atpgraph.cqa.routing.timeline.history import History
from atpgraph.cqa.routing.timeline.records import Records
from atpgraph.cqa.text.choice import text_model

# Static vectors where they are installed: quick, and on the axes that sites share.
TEXT = "static" if text_model("auto", 10**9) is not None else "bm25"
SMALL = TrainingPlan(questions=150, folds=2, hard=10, random=20)


@pytest.fixture(scope="session")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("community") / "dump"
    write_dump(simulate_community(120, 600, n_topics=4, random_state=3), folder)
    return folder


@pytest.fixture(scope="session")
def site(dump: Path, tmp_path_factory: pytest.TempPathFactory) -> Site:
    folder = tmp_path_factory.mktemp("community") / "site"
    ingest(dump, folder)
    return Site(folder)


@pytest.fixture(scope="session")
def records(site: Site) -> Records:
    return Records.of(site)


@pytest.fixture(scope="session")
def latest(records: Records) -> History:
    """Everything, right after the last post."""
    return History.latest(records, shared=True)


@pytest.fixture(scope="session")
def router(latest: History) -> Router:
    return Router("all", plan=SMALL).fit(latest)


@pytest.fixture(scope="session")
def advisor(site: Site) -> Advisor:
    return Advisor.train(site, text="bm25", plan=SMALL, n_components=8)


@pytest.fixture(scope="session")
def model(advisor: Advisor, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The advisor's folder; copy it before damaging it."""
    return advisor.save(tmp_path_factory.mktemp("trained") / "model")
