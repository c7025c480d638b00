"""``atp qa route`` and ``atp qa load`` as a user types them, on sites that lack things."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from atpgraph.cli._app import app

runner = CliRunner()


def run(*arguments: object, code: int = 0) -> str:
    result = runner.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.stdout if code == 0 else result.output


def noted(*arguments: object) -> str:
    result = runner.invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("route") / "dump"
    run(
        "data",
        "generate",
        "community",
        "-o",
        folder,
        "--users",
        60,
        "--questions",
        150,
        "--seed",
        5,
        "-q",
    )
    return folder


@pytest.fixture(scope="module")
def model(dump: Path) -> Path:
    site, model = dump.parent / "site", dump.parent / "model"
    run("qa", "ingest", dump, "-o", site, "-q")
    found = json.loads(run("qa", "train", site, "-o", model, "--dim", 4, "--json", "-q"))
    assert found["questions"] > 100
    assert found["learned_from"] > 50
    return model


def titles(dump: Path) -> list[str]:
    return re.findall(r'Title="([^"]*)"', (dump / "Posts.xml").read_text(encoding="utf-8"))


def tags(dump: Path) -> list[str]:
    return re.findall(r'Tags="\|([^|"]*)', (dump / "Posts.xml").read_text(encoding="utf-8"))


def test_site_and_model_agree(dump: Path, model: Path) -> None:
    options = ("--title", titles(dump)[3], "--tags", tags(dump)[3], "--asker", 5, "--json", "-q")
    assert "training first" in noted("qa", "route", dump.parent / "site", *options[:2])
    first = json.loads(run("qa", "route", dump.parent / "site", *options))
    assert first == json.loads(run("qa", "route", model, *options))
    assert len(first["people"]) == 5
    for person in first["people"]:
        assert person["user"] != 5
        assert 0 <= person["confidence"] <= 1
        assert person["reasons"]
    scores = [person["score"] for person in first["people"]]
    assert scores == sorted(scores, reverse=True)
    shown = run("qa", "route", model, *options[:-2], "-q")
    assert shown.startswith(f"1. user {first['people'][0]['user']}  confidence ")
    assert f"   - {first['people'][0]['reasons'][0]['text']}" in shown


def test_a_model_needs_its_site_no_more(dump: Path, model: Path, tmp_path: Path) -> None:
    moved = shutil.copytree(model, tmp_path / "moved")
    tag = tags(dump)[3]
    for arguments in (
        ("route", "--title", titles(dump)[3]),
        ("experts", "--top", 3),
        ("experts", "--tag", tag, "--top", 3),
    ):
        command = ("qa", arguments[0])
        options = (*arguments[1:], "--json", "-q")
        wanted = json.loads(run(*command, model, *options))
        found = json.loads(run(*command, moved, *options))
        wanted.pop("source", None), found.pop("source", None)
        assert found == wanted
    direct = json.loads(run("qa", "experts", dump.parent / "site", "--tag", tag, "--json", "-q"))
    assert len(direct["experts"]) > 3


def test_training_replaces_a_model_and_nothing_else(
    dump: Path, model: Path, tmp_path: Path
) -> None:
    site = dump.parent / "site"
    copy = shutil.copytree(model, tmp_path / "copy")
    run("qa", "train", site, "-o", copy, "--dim", 4, "-q")
    for file in model.iterdir():
        assert (copy / file.name).read_bytes() == file.read_bytes()
    said = run("qa", "train", site, "-o", site, "-q", code=2)
    assert "other files" in said
    said = run("qa", "train", site, "-o", dump / "Posts.xml", "-q", code=2)
    assert "is a file" in said
    assert run("qa", "train", site, "-o", tmp_path / "no" / "model", "-q", code=2)


def test_difficulty_uses_the_model(dump: Path, model: Path, tmp_path: Path) -> None:
    site = dump.parent / "site"
    found = json.loads(run("qa", "difficulty", site, "--model", model, "--json", "-q"))
    assert len(found["questions"]) == 150
    assert set(found["methods"]) == {"atp-position"}
    bare = without(dump, tmp_path / "d", accepted=r' AcceptedAnswerId="\d+"')
    said = run("qa", "difficulty", bare, "--model", model, "-q", code=2)
    assert "was trained on a different site" in said


def test_what_the_site_does_not_know_is_said(dump: Path, model: Path) -> None:
    assert "No question here has the tag 'zz'." in noted("qa", "route", model, "--tags", "zz")
    assert "User 4711 has never posted here" in noted(
        "qa", "route", model, "--title", titles(dump)[0], "--asker", 4711
    )
    assert "No word of the question" in noted("qa", "route", model, "--title", "qqqqzzzz")


def test_policies(dump: Path, model: Path, tmp_path: Path) -> None:
    title = ("--title", titles(dump)[0], "--json", "-q")

    def people(*options: object) -> list[int]:
        found = json.loads(run("qa", "route", model, *title, *options))
        return [person["user"] for person in found["people"]]

    first = people("--top", 3)
    assert not set(first[:2]) & set(people("--top", 5, "--opt-out", f"{first[0]},{first[1]}"))
    log = tmp_path / "asked.json"
    options = ("--top", 3, "--per-day", 1, "--log", log)
    assert people(*options) == first
    assert not set(people(*options)) & set(first)
    later = (*options, "--at", "2030-01-01")
    assert len(people(*later)) == 3
    assert people("--inactive-days", 1, "--at", "2030-01-01") == []
    sentence = noted("qa", "route", model, *title[:2], "--inactive-days", 1, "--at", "2030-01-01")
    assert "nobody to ask: 41 of 41 have not answered for 1 days" in sentence
    log.write_text("{")
    said = run("qa", "route", model, *title[:2], "--log", log, "-q", code=2)
    assert "is not a record of who was asked" in said


def test_newcomers(dump: Path, model: Path, tmp_path: Path) -> None:
    tag = tags(dump)[0]
    file = tmp_path / "people.json"
    file.write_text(json.dumps([{"user": 9001, "tags": [tag]}, {"user": 9002, "text": "qqzz"}]))
    options = ("--tags", tag, "--welcome", file, "--newcomers", 0.4)
    found = json.loads(run("qa", "route", model, *options, "--top", 40, "--json", "-q"))
    mine = [person for person in found["people"] if person["user"] == 9001]
    assert mine[0]["reasons"][0]["kind"] == "declared"
    assert f"newcomer, knows about {tag}" in mine[0]["reasons"][0]["text"]
    assert "newcomer 9002 cannot be ranked" in noted("qa", "route", model, *options)
    file.write_text('[{"user": "me"}]')
    assert "entry 1" in run("qa", "route", model, *options, "-q", code=2)


def without(dump: Path, folder: Path, **gone: str) -> Path:
    """The site of a dump without some attributes, and without the votes that tell of them."""
    shutil.copytree(dump, folder)
    text = (folder / "Posts.xml").read_text(encoding="utf-8")
    for pattern in gone.values():
        text = re.sub(pattern, "", text)
    (folder / "Posts.xml").write_text(text, encoding="utf-8")
    (folder / "Votes.xml").unlink()
    run("qa", "ingest", folder, "-o", folder.with_suffix(".site"), "-q")
    return folder.with_suffix(".site")


def test_site_without_acceptances(dump: Path, tmp_path: Path) -> None:
    site = without(dump, tmp_path / "d", accepted=r' AcceptedAnswerId="\d+"')
    title = titles(dump)[0]
    assert "no accepted answer to learn from" in noted("qa", "route", site, "--title", title)
    found = json.loads(run("qa", "route", site, "--title", title, "--json", "-q"))
    assert len(found["people"]) == 5
    assert found["people"][0]["reasons"][0]["kind"] == "similar"
    said = run("qa", "load", site, "-q", code=2)
    assert said == (
        "atp: error: No later question has an accepted answer, so nothing can be measured.\n"
    )


@pytest.mark.parametrize(
    "gone",
    [
        {"body": r' Body="[^"]*"'},
        {"tags": r' Tags="[^"]*"'},
        {"body": r' Body="[^"]*"', "tags": r' Tags="[^"]*"'},
        {"title": r' Title="[^"]*"', "body": r' Body="[^"]*"', "tags": r' Tags="[^"]*"'},
    ],
    ids=["titles-and-tags", "no-tags", "titles-only", "no-text"],
)
def test_sites_with_less_text(dump: Path, tmp_path: Path, gone: dict[str, str]) -> None:
    site = without(dump, tmp_path / "d", **gone)
    options = ("--title", titles(dump)[0], "--tags", tags(dump)[0], "--top", 60, "--json", "-q")
    found = json.loads(run("qa", "route", site, *options))
    assert len(found["people"]) > 20
    assert all(person["reasons"] for person in found["people"])
    kinds = {reason["kind"] for person in found["people"] for reason in person["reasons"]}
    assert ("similar" in kinds) == ("title" not in gone)
    assert ("tags" in kinds) == ("tags" not in gone)


def test_site_without_answers(dump: Path, tmp_path: Path) -> None:
    site = without(dump, tmp_path / "d", answers=r'  <row [^>]*PostTypeId="2"[^>]*/>\n')
    said = noted("qa", "route", site, "--title", titles(dump)[0])
    assert "Nobody has answered a question on this site yet." in said


def test_load(dump: Path) -> None:
    site = dump.parent / "site"
    options = ("--spread", "1", "--per-week", 2, "--newcomers", 0.3, "--top", 3, "-q")
    found = json.loads(run("qa", "load", site, *options, "--json"))
    assert list(found["policies"]) == ["no policy", "spread 1", "at most 2 a week", "30% newcomers"]
    for row in found["policies"].values():
        assert {"mrr", "mrr_cost", "hits@3", "people", "busiest_ten"} <= set(row)
    assert "cost in MRR" in run("qa", "load", site, *options)


def test_errors_are_one_sentence(model: Path, tmp_path: Path) -> None:
    site = model.parent / "site"
    broken = shutil.copytree(model, tmp_path / "broken")
    (broken / "timeline.npz").write_bytes(b"nothing")
    other = shutil.copytree(model, tmp_path / "other")
    (other / "model.json").write_text("{}")
    old = shutil.copytree(model, tmp_path / "old")
    (old / "model.json").write_text('{"format": "atpgraph-cqa-model", "version": 0}')
    for arguments in (
        ("route", model),
        ("route", model, "--title", "  "),
        ("route", model, "--title", "x", "--opt-out", "me"),
        ("route", model, "--title", "x", "--per-day", -1),
        ("route", model, "--title", "x", "--at", "2001-01-01"),
        ("route", tmp_path / "none", "--title", "x"),
        ("route", broken, "--title", "x"),
        ("route", other, "--title", "x"),
        ("route", old, "--title", "x"),
        ("route", other / "model.json", "--title", "x"),
        ("experts", tmp_path / "none"),
        ("experts", broken, "--tag", "x"),
        ("experts", model, "--tag", "no-such-tag"),
        ("load", site, "--spread", "much"),
    ):
        said = run("qa", *arguments, "-q", code=2)
        assert said.startswith("atp: error: ")
        assert said.count("\n") == 1
