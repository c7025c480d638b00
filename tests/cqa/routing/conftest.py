"""A small simulated community, ingested once."""

from __future__ import annotations

from pathlib import Path

import pytest

from atpgraph.cqa import Site, ingest, simulate_community, write_dump
from atpgraph.cqa.routing import Records, Router
from atpgraph.cqa.routing.training import TrainingPlan

SMALL = TrainingPlan(questions=150, refit_days=365.0, folds=2, hard=10, random=20)


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
def router(records: Records) -> Router:
    return Router("all", plan=SMALL).fit(records.at(records.at().last_ms))
