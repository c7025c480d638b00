"""Sites that several modules use."""

from __future__ import annotations

from pathlib import Path

import pytest

from atpgraph.cqa import IngestReport, Site, ingest


@pytest.fixture(scope="session")
def travel(data_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[IngestReport, Site]:
    """The travel site, ingested once."""
    site = tmp_path_factory.mktemp("travel") / "site"
    report = ingest(data_dir / "stackexchange/travel.stackexchange.com.7z", site)
    return report, Site(site)
