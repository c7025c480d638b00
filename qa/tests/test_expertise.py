from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr
from typer.testing import CliRunner

from atpgraph import ATP
from atpgraph.cli._app import app
from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph_qa import (
    Expertise,
    Site,
    evaluate_site,
    ingest,
    simulate_community,
    write_dump,
)
from atpgraph_qa.expertise import pooled


@pytest.fixture(scope="module")
def community(tmp_path_factory):
    folder = tmp_path_factory.mktemp("expertise")
    made = simulate_community(150, 2500, n_topics=3, random_state=7)
    write_dump(made, folder / "dump", random_state=7)
    ingest(folder / "dump", folder / "site")
    site = Site(folder / "site")
    with np.load(folder / "dump/truth.npz") as planted:
        truth = dict(planted)
    return folder / "site", site, truth, Expertise.fit(site, n_components=16)


def test_what_was_planted_is_found(community):
    _, site, truth, made = community
    overall = np.einsum("ut,ut->u", truth["expertise"], truth["interest"])
    found = made.expertise(truth["user_id"])
    assert spearmanr(found, overall, nan_policy="omit").statistic > 0.8
    hard = made.difficulty(truth["question_id"])
    assert spearmanr(hard, truth["difficulty"], nan_policy="omit").statistic > 0.5
    report = evaluate_site(site, n_bootstrap=10, expertise=made)
    accuracy = {name: row.mean for name, row in report.methods.items()}
    simple = ("number-of-answers", "time-first-answer", "time-best-answer", "level", "atp")
    assert accuracy["atp-fitted"] > max(accuracy[name] for name in simple)
    assert accuracy["atp-position"] > accuracy["atp"]


def test_the_mean_score_is_the_mean_over_all_nodes(community):
    made = community[3]
    source, target = made.model.source_.astype(float), made.model.target_.astype(float)
    for node in (0, 17, len(source) - 1):
        slow = np.mean(source @ target[node]) - np.mean(target @ source[node])
        assert made.mean_score[node] == pytest.approx(slow, abs=1e-9)


edges = st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7)), min_size=1, max_size=25)


@given(edges, st.integers(0, 99), st.sampled_from([0.1, 1.0, 5.0]))
def test_positions_minimise_the_sum_of_squares(pairs, seed, strength):
    graph = DiGraph.from_edges(pairs)
    anchor = np.random.default_rng(seed).normal(size=graph.n_nodes)
    rows, wanted = [], []
    for u, v in zip(graph.sources.tolist(), graph.targets.tolist(), strict=True):
        if u != v:
            row = np.zeros(graph.n_nodes)
            row[v], row[u] = 1, -1
            rows.append(row)
            wanted.append(1.0)
    matrix = np.array([*rows, *(np.sqrt(strength) * np.eye(graph.n_nodes))])
    slow = np.linalg.lstsq(matrix, np.r_[wanted, np.sqrt(strength) * anchor], rcond=None)[0]
    assert pooled(graph, anchor, strength) == pytest.approx(slow, abs=1e-5)


def test_pairs_experts_and_tags(community):
    _, site, truth, made = community
    ids = site.questions.id[:2]
    first, second = made.difficulty(ids)
    assert made.harder(ids[:1], ids[1:])[0] == np.sign(first - second)
    assert made.harder([10**9], ids[:1])[0] == 0
    users, scores = made.experts(5)
    assert (np.diff(scores) <= 0).all()
    assert scores[0] == np.nanmax(made.expertise(truth["user_id"]))
    assert len(users) == 5
    counts = np.bincount(site.tags.tags, minlength=len(site.tags.names))
    tag = site.tags.names[int(np.argmax(counts))]
    people, _ = made.tag_experts(site, tag, 10**6)
    mine = site.tags.questions(tag)
    inside = np.isin(site.answers.question, mine)
    posted = {*site.questions.asker[mine].tolist(), *site.answers.owner[inside].tolist()}
    assert set(people.tolist()) <= posted
    with pytest.raises(InputError, match=f"No question has the tag .*; there are {tag}"):
        made.tag_experts(site, tag[:-1])


def test_a_model_of_another_graph_is_refused():
    with pytest.raises(InputError, match="competition graph"):
        Expertise.from_model(ATP(n_components=2).fit([("a", "b")]))


def test_the_commands(tmp_path):
    # Nothing is learnt here, so the site is small.
    write_dump(simulate_community(50, 200, n_topics=2, random_state=7), tmp_path / "dump")
    ingest(tmp_path / "dump", tmp_path / "site")
    folder, site = tmp_path / "site", Site(tmp_path / "site")
    run = CliRunner().invoke
    model = tmp_path / "model"
    train = ["qa", "train", str(folder), "-o", str(model), "--dim", "8", "--text", "bm25"]
    trained = run(app, [*train, "--json"])
    assert trained.exit_code == 0, trained.output
    assert json.loads(trained.stdout)["questions"] == len(site.questions)
    assert ATP.load(model / "expertise.npz").source_.shape[1] == 8
    for arguments in ([str(model)], [str(model), "--tag", site.tags.names[0]]):
        found = run(app, ["qa", "experts", *arguments, "--top", "3", "--json"])
        assert found.exit_code == 0, found.output
        assert len(json.loads(found.stdout)["experts"]) == 3
    for name in ("all.csv", "all.parquet", "all.txt"):
        output = tmp_path / name
        command = ["qa", "difficulty", str(folder), "--model", str(model), "-o", str(output)]
        assert run(app, command).exit_code == (2 if name == "all.txt" else 0)
        assert output.exists() == (name != "all.txt")
    command = ["qa", "difficulty", str(folder), "--evaluate", "--bootstrap", "5", "--json", "-q"]
    command += ["--methods", "atp,atp-position", "--model", str(model)]
    shown = run(app, command)
    assert shown.exit_code == 0, shown.output
    payload = json.loads(shown.stdout)
    assert set(payload["methods"]["atp"]["accuracy"]) == {"mean", "low", "high"}
