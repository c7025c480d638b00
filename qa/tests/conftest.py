"""A small simulated community, ingested once, what is trained on it, and a real site."""

from __future__ import annotations

from pathlib import Path

import pytest

from atpgraph_qa import Advisor, IngestReport, Site, ingest, simulate_community, write_dump
from atpgraph_qa.ranking.router import Router
from atpgraph_qa.ranking.training import TrainingPlan
from atpgraph_qa.text.choice import text_model
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.records import Records

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
    return History.latest(records)


@pytest.fixture(scope="session")
def router(latest: History) -> Router:
    return Router("all", plan=SMALL).fit(latest)


@pytest.fixture(scope="session")
def advisor(site: Site) -> Advisor:
    return Advisor.fit(site, text="bm25", plan=SMALL, n_components=8)


@pytest.fixture(scope="session")
def model(advisor: Advisor, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The advisor's folder; copy it before damaging it."""
    return advisor.save(tmp_path_factory.mktemp("trained") / "model")


@pytest.fixture(scope="session")
def travel(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[IngestReport, Site]:
    """The travel site, ingested once."""
    site = tmp_path_factory.mktemp("travel") / "site"
    report = ingest(data_dir / "stackexchange/travel.stackexchange.com.7z", site)
    return report, Site(site)
