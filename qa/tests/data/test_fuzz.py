"""Dumps made or damaged at random: an error in one sentence or a sound site, and nothing else."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import pyarrow.parquet as parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atpgraph.errors import AtpError
from atpgraph_qa import Site, bounty_truth, competition_graph, ingest, site_statistics
from atpgraph_qa.data.schema import TABLES

from ..dumps import ROOTS, question, small, write, xml

py7zr = pytest.importorskip("py7zr")

numbers = st.one_of(
    st.integers(-2, 12).map(str),
    st.sampled_from(
        [
            "",
            "x",
            "1.5",
            "1e3",
            "0x10",
            "99999999999999999999",
            "9" * 19,
            "1_0",
            "１",
            "-",
            "1" * 400,
        ]
    ),
)
dates = st.one_of(
    st.integers(1, 28).map(lambda day: f"2020-01-{day:02d}T00:00:00.000"),
    st.sampled_from(["", "0001-01-01", "9999-12-31T23:59:59.999", "2020-13-01", "now", "2020"]),
)
texts = st.one_of(st.text(max_size=30), st.sampled_from(["<a><b>", "|a|b|", "<", "||", "<><>"]))
row = st.fixed_dictionaries(
    {},
    optional={
        "Id": numbers,
        "PostTypeId": st.sampled_from(["1", "2", "1", "2", "4", "17", "x"]),
        "ParentId": numbers,
        "AcceptedAnswerId": numbers,
        "OwnerUserId": numbers,
        "CreationDate": dates,
        "Score": numbers,
        "ViewCount": numbers,
        "Title": texts,
        "Body": texts,
        "Tags": texts,
        "PostId": numbers,
        "VoteTypeId": st.sampled_from(["2", "8", "9", "x"]),
        "BountyAmount": numbers,
        "UserId": numbers,
        "Reputation": numbers,
        "TagName": texts,
        "Count": numbers,
        "RelatedPostId": numbers,
        "LinkTypeId": numbers,
    },
)


def check(dump: Path, folder: Path) -> None:
    """Ingest over an old site: it is replaced by a sound one, or stays."""
    site = folder / "site"
    ingest(write(folder / "old", posts=[question(4711)]), site)
    try:
        ingest(dump, site)
    except AtpError:
        assert Site(site).questions.id.tolist() == [4711]
        try:
            ingest(dump, site, allow_bad_rows=True)
        except AtpError:
            assert Site(site).questions.id.tolist() == [4711]
    opened = Site(site)
    rows = opened.manifest["rows"]
    for table in TABLES:
        stored = parquet.read_table(site / opened.manifest["tables"] / f"{table}.parquet")
        assert len(stored) == rows[table]
        assert len(set(stored["id"].to_pylist())) == len(stored)
    questions, answers = opened.questions, opened.answers
    assert len(questions) == rows["questions"] > 0
    assert ((answers.question >= 0) & (answers.question < len(questions))).all()
    assert (questions.accepted < len(answers)).all()
    for ega in ("none", "consecutive", "all-pairs"):
        site_statistics(opened, competition_graph(opened, ega=ega))
    bounty_truth(opened)
    opened.titles(), opened.question_bodies(), opened.answer_bodies()
    assert len(opened.tags.indptr) == len(questions) + 1
    leftovers = {entry.name.split("-")[0] for entry in site.iterdir()}
    assert leftovers == {"site.json", "tables"}


@settings(max_examples=25)
@given(st.dictionaries(st.sampled_from(list(ROOTS)), st.lists(row, max_size=12)))
def test_rows_of_any_kind(tables):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "dump").mkdir()
        for file, rows in {"Posts.xml": [question(1)], **tables}.items():
            # quoteattr leaves control characters alone: those are part of the game
            data = xml(ROOTS[file], rows).encode("utf-8", "surrogatepass")
            (folder / "dump" / file).write_bytes(data)
        check(folder / "dump", folder)


edits = st.lists(
    st.tuples(
        st.floats(0, 1),
        st.sampled_from(["cut", "delete", "insert", "flip"]),
        st.one_of(
            st.binary(max_size=20),
            st.sampled_from(
                b"<row|/>|&#x0E;|&#x00;|<!--|-->|\xff|</posts>|<!DOCTYPE a>|&lol;|<![CDATA[|<?x ?>|"
                b"\x00\x00|<|>|<row Id='1'/>".split(b"|")
            ),
        ),
    ),
    min_size=1,
    max_size=6,
)


def damage(data: bytes, changes: list[tuple[float, str, bytes]]) -> bytes:
    for where, kind, what in changes:
        place = int(where * len(data))
        if kind == "cut":
            data = data[:place] or data
        elif kind == "delete":
            data = data[:place] + data[place + len(what) :]
        elif kind == "insert":
            data = data[:place] + what + data[place:]
        else:
            data = data[:place] + what + data[place + len(what) :]
    return data


@settings(max_examples=40)
@given(st.sampled_from(list(ROOTS)), edits)
def test_damaged_files(file, changes):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dump = small(folder / "dump")
        (dump / file).write_bytes(damage((dump / file).read_bytes(), changes))
        check(dump, folder)


@settings(max_examples=20)
@given(edits)
def test_damaged_archives(changes):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        archive = folder / "site.7z"
        dump = small(folder / "dump")
        with py7zr.SevenZipFile(archive, "w") as packed:
            for file in sorted(dump.iterdir()):
                packed.write(file, file.name)
        archive.write_bytes(damage(archive.read_bytes(), changes))
        check(archive, folder)


def test_billion_laughs(tmp_path):
    entities = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 12))
    bomb = f'<!DOCTYPE posts [<!ENTITY l0 "lol">{entities}]>'
    body = xml("posts", [question(1)])[len('<?xml version="1.0" encoding="utf-8"?>') :]
    dump = tmp_path / "dump"
    dump.mkdir()
    (dump / "Posts.xml").write_text(bomb + body.replace('Id="1"', 'Id="1" Title="&l11;"'))
    with pytest.raises(AtpError, match="document type"):
        ingest(dump, tmp_path / "site")
    # without its declaration the entity is unknown, and the row unreadable
    (dump / "Posts.xml").write_text(body.replace('Id="1"', 'Id="1" Title="&l11;"'))
    with pytest.raises(AtpError, match="1 of 1 rows"):
        ingest(dump, tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_posts_that_are_each_others_parents(tmp_path):
    rows = [question(1), *({**question(i), "PostTypeId": 2, "ParentId": i % 3 + 2} for i in (2, 3))]
    rows.append({**question(4), "PostTypeId": 2, "ParentId": 4})
    dump = write(tmp_path / "dump", posts=rows)
    ingest(dump, tmp_path / "site")
    site = Site(tmp_path / "site")
    assert (len(site.questions), len(site.answers)) == (1, 0)
    assert competition_graph(site).graph.n_nodes == 0


def test_a_huge_attribute_is_one_unreadable_row(tmp_path):
    dump = tmp_path / "dump"
    dump.mkdir()
    text = xml("posts", [question(i) for i in range(1, 201)])
    huge = "<row Id='999' PostTypeId='1' Body='" + "x" * 11_000_000 + "' />\n"
    (dump / "Posts.xml").write_text(text.replace("</posts>", huge + "</posts>"))
    report = ingest(dump, tmp_path / "site")
    assert (report.rows["questions"], report.files["Posts.xml"].unreadable) == (200, 1)


def test_a_report_is_plain_json(tmp_path):
    report = ingest(small(tmp_path / "dump"), tmp_path / "site")
    assert json.loads(json.dumps(report.to_dict()))["rows"]["questions"] == 3
