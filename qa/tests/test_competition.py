from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atpgraph.cycles.agony import agony
from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph_qa import EdgeTypes, Site, competition_graph, ingest, site_statistics
from atpgraph_qa.competition import _gain

from .dumps import answer, question, small, write


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Site:
    folder = tmp_path_factory.mktemp("competition")
    rows = [
        question(1, 1, OwnerUserId=10, AcceptedAnswerId=22),
        question(2, 2, OwnerUserId=10, AcceptedAnswerId=99),  # an answer nobody has
        question(3, 28, OwnerUserId=10, AcceptedAnswerId=23),  # accepted: its own asker
        question(4, 5, AcceptedAnswerId=24),  # asker unknown
        question(5, 6, OwnerUserId=11, AcceptedAnswerId=26),  # best answerer unknown
        question(6, 7, OwnerUserId=11, AcceptedAnswerId=22),  # an answer to another question
        answer(21, 1, OwnerUserId=11),
        answer(22, 1, OwnerUserId=12),
        answer(27, 1, OwnerUserId=12),  # the winner answers twice
        answer(28, 1),  # unknown
        answer(23, 3, OwnerUserId=10),
        answer(24, 4, OwnerUserId=13),
        answer(25, 4, OwnerUserId=12),
        answer(26, 5),
    ]
    ingest(write(folder / "dump", posts=rows), folder / "site")
    return Site(folder / "site")


def edges(site: Site, **options: object) -> set[tuple[str, str]]:
    return set(competition_graph(site, **options).graph.edges())


ASKED = {
    ("user:10", "question:1"),
    ("user:10", "question:2"),
    ("user:10", "question:3"),
    ("user:11", "question:5"),
    ("user:11", "question:6"),
}
BEST = {("question:1", "user:12"), ("question:3", "user:10"), ("question:4", "user:13")}
BEATEN = {("user:10", "user:12"), ("user:10", "user:10")}
OTHERS = {("user:11", "user:12"), ("user:12", "user:13")}


def test_edges_of_every_type(site):
    assert edges(site) == ASKED | BEST | BEATEN | OTHERS
    only = {"asker_question": ASKED, "question_best": BEST, "asker_best": BEATEN}
    for name, expected in {**only, "others_best": OTHERS}.items():
        types = EdgeTypes(**{field: field == name for field in EdgeTypes.__dataclass_fields__})
        assert edges(site, edges=types) == expected
    assert competition_graph(site).counts == {
        "asker_question": 5,
        "question_best": 3,
        "asker_best": 2,
        "others_best": 2,
    }


def test_excluded_questions_give_no_edge(site):
    left = edges(site, exclude=[1, 3], ega="consecutive")
    assert left == {
        ("user:10", "question:2"),
        ("user:11", "question:5"),
        ("user:11", "question:6"),
        ("question:4", "user:13"),
        ("user:12", "user:13"),
        ("question:5", "question:6"),
    }


def test_expertise_gain(site):
    plain = edges(site)
    later = {("question:1", "question:2"), ("question:5", "question:6")}
    assert edges(site, ega="consecutive") - plain == later | {("question:2", "question:3")}
    assert edges(site, ega="all-pairs", tau_days=26) - plain == {
        ("question:1", "question:3"),
        ("question:2", "question:3"),
    }
    assert edges(site, ega="all-pairs", tau_days=27) - plain == {("question:1", "question:3")}
    assert edges(site, ega="all-pairs") == plain
    for wrong in ({"ega": "some"}, {"tau_days": -1.0}, {"tau_days": float("nan")}):
        with pytest.raises(InputError):
            competition_graph(site, **wrong)


def test_nodes_by_id(site):
    found = competition_graph(site)
    first, none, last = found.user_nodes([12, 5, 10])
    assert none == -1
    assert found.graph.labels[[first, last]].tolist() == ["user:12", "user:10"]
    assert found.graph.labels[found.question_nodes([4])[0]] == "question:4"
    assert found.question_nodes([12])[0] == -1


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 200)), max_size=25),
    st.sampled_from([0.0, 1.0, 7.5, 30.0]),
)
def test_gain_pairs_against_loops(events, tau):
    events = sorted(events, key=lambda event: event[1])
    asker = np.array([who for who, _ in events], dtype=np.int64)
    created = np.array([day for _, day in events], dtype=np.int64) * 24 * 3600 * 1000
    pairs = [(i, j) for j in range(len(events)) for i in range(j) if asker[i] == asker[j]]
    least = max(tau, 1e-9)
    late = {(i, j) for i, j in pairs if events[j][1] - events[i][1] >= least}
    following = {(i, j) for i, j in pairs if not any(asker[k] == asker[i] for k in range(i + 1, j))}
    for mode, expected in (("all-pairs", late), ("consecutive", following)):
        early, later = _gain(asker, created, mode, tau)
        assert len(early) == len(expected)
        assert set(zip(early.tolist(), later.tolist(), strict=True)) == expected


def test_site_as_arrays(tmp_path):
    ingest(small(tmp_path / "dump"), tmp_path / "site")
    site = Site(tmp_path / "site")
    assert site.questions.id.tolist() == [1, 2, 3]
    assert site.questions.asker.tolist() == [10, 10, -1]
    assert site.answers.id.tolist() == [4, 5, 6]
    assert site.questions.accepted.tolist() == [1, -1, -1]
    assert site.answers.question.tolist() == [0, 0, 1]
    assert site.answers.owner.tolist() == [11, 12, -1]
    assert site.bounties.question.tolist() == [0, 1]
    assert site.bounties.amount.tolist() == [50, 200]
    assert site.bounties.user.tolist() == [10, 12]
    assert site.users.id.tolist() == [10, 12]
    assert site.users.reputation.tolist() == [1, 99]
    assert [site.tags.of(q) for q in range(3)] == [["one", "two"], ["two"], []]
    assert site.tags.questions("two").tolist() == [0, 1]
    assert site.tags.questions("none").tolist() == []
    assert (site.links.source.tolist(), site.links.target.tolist()) == ([1], [0])
    assert site.titles([1]) == ["second"]
    assert site.question_bodies() == ["<p>café</p>\n", "", ""]
    assert site.answer_bodies([1]) == ["<p>b</p>"]
    with pytest.raises(InputError):
        site.titles([3])


@pytest.mark.data
def test_golden_chain(data_dir, tmp_path):
    ingest(data_dir / "stackexchange/ai.stackexchange.com", tmp_path / "ai")
    site = Site(tmp_path / "ai")
    found = competition_graph(site)
    graph = found.graph
    assert (graph.n_nodes, graph.n_edges, graph.n_self_loops) == (1058, 1320, 4)
    path = data_dir / "peer_pystack_ai/competition_graph_index0.edges"
    theirs = DiGraph.from_edges(np.loadtxt(path, dtype=np.int64))
    degrees = [sorted(zip(g.in_degree, g.out_degree, strict=True)) for g in (graph, theirs)]
    assert degrees[0] == degrees[1]
    assert agony(graph).value == 103
    counted = site_statistics(site, found)
    assert [counted[name] for name in ("questions", "nodes", "edges")] == [604, 1058, 1320]
