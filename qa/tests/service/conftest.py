"""A small trained community whose last post was a day ago, and a service in front of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from atpgraph_qa import Advisor, Community, Site, ingest, simulate_community, write_dump
from atpgraph_qa.service import tokens
from atpgraph_qa.service.run import create_app
from atpgraph_qa.service.service import Service
from atpgraph_qa.service.settings import Settings
from qa.tests.service.cluster import Cluster, why_not

with warnings.catch_warnings():  # it would like another library than the one we use
    warnings.simplefilter("ignore")
    from starlette.testclient import TestClient

NOW = 1_790_000_000_000  # a Monday in September 2026, 14:13 UTC
DAY_MS = 86_400_000


class Clock:
    """A time that goes on when it is told to."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        return self.now

    def pass_hours(self, hours: float) -> None:
        self.now += round(hours * 3_600_000)


def moved(community: Community, last_ms: int) -> Community:
    """The community with its last post at another time."""
    shift = last_ms - int(max(community.asked_ms.max(), community.answered_ms.max()))
    names = ("registered_ms", "asked_ms", "answered_ms", "bounty_ms")
    return replace(community, **{name: getattr(community, name) + shift for name in names})


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trained model of a small community."""
    folder = tmp_path_factory.mktemp("serve")
    community = moved(
        simulate_community(60, 300, n_topics=3, years=1.0, random_state=1), NOW - DAY_MS
    )
    write_dump(community, folder / "dump", random_state=1)
    ingest(folder / "dump", folder / "site")
    # Of the two text models the one that takes no time: thousands of questions come in.
    text = "bm25" if find_spec("wordllama") is None else "static"
    return Advisor.fit(Site(folder / "site"), text=text).save(folder / "model")


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A PostgreSQL of its own on loopback, or a skip that says why."""
    if why_not():
        pytest.skip(why_not())
    with Cluster.start() as made:
        yield made


@pytest.fixture(params=["sqlite", "postgres"])
def database_url(request: pytest.FixtureRequest) -> str:
    """An empty database of each kind; empty for SQLite in the work folder."""
    if request.param == "sqlite":
        return ""
    url: str = request.getfixturevalue("cluster").empty_database()
    return url


@dataclass
class Front:
    """A service with clients of every scope."""

    service: Service
    client: TestClient
    clock: Clock
    tokens: dict[str, str]

    def call(
        self, method: str, path: str, body: Any = None, *, scope: str = "admin", **headers: str
    ) -> Any:
        sent = {"authorization": f"Bearer {self.tokens[scope]}", **headers}
        return self.client.request(method, path, json=body, headers=sent)

    def ask(self, number: int, **more: Any) -> Any:
        """A question about tomatoes, as the site would send it."""
        body = {
            "id": number, "title": "Why do my tomato leaves curl in the greenhouse?",
            "tags": ["tomatoes"], "asker": 7, "at": self.clock.now / 1000, **more,
        }  # fmt: skip
        answer = self.call("POST", "/v1/questions", body)
        assert answer.status_code == 202, answer.text
        self.service.apply_all()
        return answer.json()

    def suggestions(self, **filters: Any) -> list[dict[str, Any]]:
        query = "&".join(f"{name}={value}" for name, value in filters.items())
        answer = self.call("GET", f"/v1/suggestions?{query}")
        assert answer.status_code == 200, answer.text
        items: list[dict[str, Any]] = answer.json()["items"]
        return items


def _hurry(connection: Any, _: Any) -> None:
    connection.execute("PRAGMA synchronous=OFF")


Make = Callable[..., Front]


@pytest.fixture
def make_front(model: Path, tmp_path: Path) -> Iterator[Make]:
    """Make services with settings by section: make_front(policy={"mode": "automatic"})."""
    made: list[Front] = []

    def make(url: str = "", folder: str = "work", resolver: Any = None, **sections: Any) -> Front:
        # By default rules are wide open, so that a test sees the one it is about.
        policy = {
            "rest_hours": 0.0, "per_day": 1000, "per_week": 1000, "least_answers": 0,
            "inactive_days": 10_000.0, "spread": 0.0, **sections.pop("policy", {}),
        }  # fmt: skip
        store = {"folder": str(tmp_path / folder), "database": url, **sections.pop("store", {})}
        limits = {"per_second": 1e6, "burst": 10**6, **sections.pop("limits", {})}
        settings = Settings()
        for name, values in {
            "policy": policy, "store": store, "limits": limits, **sections
        }.items():  # fmt: skip
            settings = settings.changed(name, values, "test")
        clock = Clock()
        service = Service(settings, model, clock=clock)
        service.sender.resolver = resolver or service.sender.resolver
        if not url:  # no test of this kind takes the power away
            event.listen(service.database.engine, "connect", _hurry)
            service.database.engine.dispose()
        with service.database.write() as connection:
            known = {
                scope: tokens.create_token(connection, scope, [scope], NOW)[1]
                for scope in tokens.SCOPES
            }
        app = create_app(service, background=False)
        client = TestClient(app, raise_server_exceptions=False, follow_redirects=False)
        front = Front(service, client, clock, known)
        made.append(front)
        return front

    yield make
    for front in made:
        front.client.close()
        front.service.engine.limiter.close()
        front.service.ready = False  # nothing is worth a last snapshot
        front.service.stop()


@pytest.fixture
def front(make_front: Make, database_url: str) -> Front:
    """A service with wide rules on each kind of database."""
    return make_front(database_url)
