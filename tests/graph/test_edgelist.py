"""Reading and writing edge lists."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from atpgraph import DiGraph, InputError, read_edgelist, write_edgelist
from atpgraph.graph.edgelist import read_pairs

anywhere = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def read(folder: Path, text: str | bytes, name: str = "graph.txt", **options) -> DiGraph:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_edgelist(path, **options)


def edges(graph: DiGraph):
    return list(graph.edges())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# Nodes: 3\n# FromNodeId\tToNodeId\n1\t2\n2\t3\n", [(1, 2), (2, 3)]),
        ("% matrix\n  % another\n\n1 2\n   \n 2   3 \n", [(1, 2), (2, 3)]),
        ("1,2\n2,3", [(1, 2), (2, 3)]),
        ("1;2\r\n2;3\r\n", [(1, 2), (2, 3)]),
        ("1 2\r2 3\r", [(1, 2), (2, 3)]),
        ("\ufeff1 2\n2 3\n", [(1, 2), (2, 3)]),
        ("source,target\n1,2\n2,3\n", [(1, 2), (2, 3)]),
        ('"Source","Target"\n"1","2"\n"2","3"\n', [(1, 2), (2, 3)]),
        ("citing\tcited\n1\t2\n2\t3\n", [(1, 2), (2, 3)]),
        ("id,to,from\nx,2,1\ny,3,2\n", [(1, 2), (2, 3)]),
        (",source,target\n0,1,2\n1,2,3\n", [(1, 2), (2, 3)]),
        ("a b\nb c\n", [("a", "b"), ("b", "c")]),
        ("New York\tRome\nRome\tOslo\n", [("New York", "Rome"), ("Rome", "Oslo")]),
        ('"a,b" , "c ""d"""\n"c ""d""",x"y\n', [("a,b", 'c "d"'), ('c "d"', 'x"y')]),
        ('a,"two\nlines"\n"two\nlines",c\n', [("a", "two\nlines"), ("two\nlines", "c")]),
        ("007 7\n7 8\n", [("007", "7"), ("7", "8")]),
        ("-3 4\n4 0\n", [(-3, 4), (4, 0)]),
        ("-0 1\n1 2\n", [("-0", "1"), ("1", "2")]),
        ("9223372036854775807 -9223372036854775808\n", [(2**63 - 1, -(2**63))]),
        ("9223372036854775808 1\n", [("9223372036854775808", "1")]),
        ("café Žižek\nŽižek 東京\n", [("café", "Žižek"), ("Žižek", "東京")]),
        ('"" b\nb c\n', [("", "b"), ("b", "c")]),
        ("a,b,\nb,c,\n", [("a", "b"), ("b", "c")]),
        ("a b {}\nb c {'since': 2019}\n", [("a", "b"), ("b", "c")]),
        ("1 2 likes {}\n2 3 hates {}\n", [(1, 2), (2, 3)]),
        ("subject,predicate,object\na,is_a,b\n", [("a", "b")]),
        ("1 1\n1 2\n1 2\n", [(1, 1), (1, 2)]),
    ],
)
def test_formats(tmp_path, text, expected):
    graph = read(tmp_path, text)
    assert edges(graph) == expected
    assert graph.weights is None
    assert edges(read(tmp_path, gzip.compress(text.encode()), "graph.gz")) == expected
    assert edges(read(tmp_path, gzip.compress(text.encode()), "zipped-without-suffix")) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 2 0.5\n2 3 -1e3\n", [0.5, -1000.0]),
        ("a,b,w\nx,y,1\ny,z,2\n", [1, 2]),
        ("source\ttarget\tweight\nx\ty\t1\ny\tz\t2\n", [1, 2]),
        ("Source,Target,Type,Weight\nx,y,Directed,1\ny,z,Directed,2.5\n", [1, 2.5]),
        ("1 2 3 1999-01-01\n2 3 4 2000-01-01\n", [3, 4]),
        ("1 2 +.5\n1 2 5.\n", [5.5]),
        ("1,2,0.1234567890123456789\n2,3,1e-310\n", [0.1234567890123456789, 1e-310]),
    ],
)
def test_weights(tmp_path, text, expected):
    weights = read(tmp_path, text).weights
    assert weights is not None
    assert weights.tolist() == expected
    assert read(tmp_path, text, weight=False).weights is None


def test_options_override_what_is_detected(tmp_path):
    assert edges(read(tmp_path, "source target\n1 2\n", header=False)) == [
        ("source", "target"),
        ("1", "2"),
    ]
    assert edges(read(tmp_path, "3 4\n1 2\n", header=True)) == [(1, 2)]
    assert edges(read(tmp_path, "a,1 b,2\n", delimiter=" ")) == [("a,1", "b,2")]
    assert edges(read(tmp_path, "a|b\n", delimiter="|")) == [("a", "b")]
    assert edges(read(tmp_path, "#a b\n", comments="")) == [("#a", "b")]
    assert edges(read(tmp_path, "/ note\na b\n", comments="/")) == [("a", "b")]
    assert edges(read(tmp_path, '"a\tb\n', quotes=False)) == [('"a', "b")]
    for bad in ("", ",,", "\n", "é", "1", "."):
        with pytest.raises(InputError, match="delimiter"):
            read(tmp_path, "1 2\n", delimiter=bad)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        (" \n\n", "is empty"),
        ("# nothing\n# here\n", "only comments"),
        ("source,target\n", "header and no edges"),
        ("# x\n1 2\n3\n", "line 3: one field where an edge needs 2, separated by blanks"),
        ("1\n", "line 1: one field"),
        ("a\tb\nc d\n", "line 2: one field .* separated by tabs"),
        ("id,source,target\n1,2\n", "line 2: 2 fields where an edge needs 3"),
        ("1 2 3\n1 2 nan\n", "line 2: the weight 'nan' is not a finite number"),
        ("1 2 3\n1 2 -Infinity\n", "line 2: the weight '-Infinity'"),
        ("1 2 1e999\n1 3 2\n", "line 1: the weight '1e999'"),
        ("1 2 nan\n1 2 inf\n", "line 1: the weight 'nan'"),
        ("1 2 3\n1 2 x\n1 2 4\n", "line 2: the weight 'x'"),
        ("1 2 3\r\n\r\n2 3\r\n", "line 3: no weight, unlike other lines"),
        ("1 2\n2 3 4\n", "line 1: no weight, unlike other lines"),
        ("source,target,weight\na,b,\n", "line 2: no weight"),
        ("source,target,weight\na,b,much\n", "line 2: the weight 'much'"),
        ("a,b\n,c\n", "line 2: the id of a node is empty"),
        ('a,b\n"c,d\ne,f\n', "line 2: a quoted field is never closed"),
        ('a,"b\nb"\n"c"d,e\n', "line 3: text follows a closing quote"),
        (b"1 2\n\x00\x01\x02\n", "line 2: not UTF-8 text .byte 0x00"),
        (b"a b\r\nc \xff\xfe\n", "line 2: not UTF-8 text .byte 0xff"),
        ("1 2\n".encode("utf-16"), "UTF-16"),
        (b"PK\x03\x04\x00\x00", "not UTF-8 text"),
        (gzip.compress(b"1 2\n" * 999, mtime=0)[:-9], "truncated gzip"),
        (gzip.compress(b"1 2\n" * 999, mtime=0)[:20] + b"?" * 30, "damaged gzip"),
        (gzip.compress(b"1 2\n", mtime=0) + b"tail", "damaged gzip"),
        (gzip.compress(b"", mtime=0), "is empty"),
    ],
)
def test_bad_files_are_one_sentence(tmp_path, text, message):
    with pytest.raises(InputError, match=message) as caught:
        read(tmp_path, text)
    assert str(tmp_path / "graph.txt") in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith(".")


def test_bad_paths(tmp_path):
    with pytest.raises(InputError, match="is a directory"):
        read_edgelist(tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        read_edgelist(tmp_path / "missing.txt")
    with pytest.raises(InputError, match="cannot be read"):
        read_edgelist("nul\0inside")
    with pytest.raises(InputError, match="not a gzip file"):
        read(tmp_path, "1 2\n", "plain.gz")
    with pytest.raises(InputError, match="no column of weights"):
        read(tmp_path, "id,source,target\n1,2,3\n", weight=True)
    with pytest.raises(InputError, match="no column of weights"):
        read(tmp_path, "1 2\n", weight=True)


@pytest.mark.parametrize(
    "text",
    [
        "when,pkg,needs\n2020,a,b\n",  # the header is no edge, and neither is 2020 → a
        "when,citing,cited\n2020,1,2\n2021,2,3\n",
        "name,id,parent\nx,1,2\ny,2,3\n",
        "2020,a,b\n2021,b,c\n",
        "a is_a b\nb part_of c\n",
        "pkg,needs,when,by\na,b,yes,x\n",
    ],
)
def test_columns_that_could_be_anything_are_rejected(tmp_path, text):
    for options in ({}, {"weight": False}):
        with pytest.raises(InputError, match=r"nothing says which two .*--source and --target"):
            read(tmp_path, text, **options)
    with pytest.raises(InputError, match="source and target in the first line"):
        read_pairs(tmp_path / "graph.txt")
    first, second = text.splitlines()[0].replace(",", " ").split()[1:3]
    named = not text.startswith(("2020", "a "))
    header = True if text.startswith("pkg") else None  # there is no number in this one
    graph = read(tmp_path, text, source=2, target=3, header=header)
    assert graph.n_edges == text.count("\n") - named
    if named:
        assert edges(read(tmp_path, text, source=first, target=second)) == edges(graph)


def test_columns_by_name_and_number(tmp_path):
    text = "when,pkg,needs,cost,kind\n2020,a,b,2,is_a\n2021,b,c,3,part_of\n2021,a,b,4,has\n"
    graph = read(tmp_path, text, source="pkg", target="needs", weight="cost", type="kind")
    assert edges(graph) == [("a", "b"), ("b", "c")]
    assert graph.weights is not None
    assert graph.weights.tolist() == [6, 3]
    assert graph.type_names == ("is_a", "part_of", "has")
    assert graph.has_type("has").tolist() == [True, False]
    numbered = read(tmp_path, text, source=2, target=3, weight=4, type=5)
    assert numbered.type_names == graph.type_names
    assert edges(read(tmp_path, text, source="needs", target="pkg")) == [("b", "a"), ("c", "b")]
    triples = read(tmp_path, "a is_a b\nb part_of c\n", type=2)
    assert edges(triples) == [("a", "b"), ("b", "c")]
    assert triples.type_names == ("is_a", "part_of")
    with pytest.raises(InputError, match="line 3: the edge has no type"):
        read(tmp_path, "source,target,kind\na,b,x\nb,c,\n", type="kind")
    with pytest.warns(DeprecationWarning, match="weight"):
        assert read(tmp_path, "1 2 3\n", weights=False).weights is None


@pytest.mark.skipif(os.name == "nt", reason="POSIX permissions")
def test_permission_denied(tmp_path):
    path = tmp_path / "secret.txt"
    path.write_text("1 2\n")
    path.chmod(0)
    user = os.geteuid()
    if user == 0:  # root may read everything
        os.seteuid(65534)
    try:
        with pytest.raises(InputError, match="permission denied"):
            read_edgelist(path)
    finally:
        os.seteuid(user)


def slow_twin(text: str, comments: str = "#%"):
    """Rows of blank-separated text, the obvious way; None where there is an error."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    rows = [line.replace("\t", " ").strip(" ") for line in lines]
    rows = [row.split() for row in rows if row and row[0] not in comments]
    if not rows or any(len(row) < 2 for row in rows):
        return None
    ids = [row[:2] for row in rows]
    third = [row[2] if len(row) > 2 else None for row in rows]
    numbers = []
    for token in third:
        try:
            numbers.append(float(token))
        except (TypeError, ValueError):
            numbers.append(None)
    weights = None
    if any(number is not None for number in numbers):
        if any(number is None or not np.isfinite(number) for number in numbers):
            return None
        weights = numbers
    if all(str(int(x)) == x if x.lstrip("-").isdigit() else False for row in ids for x in row):
        ids = [[int(x) for x in row] for row in ids]
    elif len(rows[0]) > 2 and weights is None and not rows[0][2].startswith("{"):
        return None  # three columns of words: nothing says which two are the edges
    labels = list(dict.fromkeys(x for row in ids for x in row))
    total: dict = {}
    for (source, target), weight in zip(ids, weights or [1] * len(ids), strict=True):
        total[source, target] = total.get((source, target), 0) + weight
    return labels, total, weights is not None


tokens = st.sampled_from(
    [
        "0",
        "1",
        "2",
        "10",
        "-1",
        "-0",
        "01",
        "a",
        "b",
        "ab",
        "ba",
        "café",
        "1.5",
        "2e1",
        "-.25",
        "1e400",
        "nan",
        "inf",
        "x,y",
    ]
)
blanks = st.sampled_from([" ", "  ", "\t", " \t "])
line_ends = st.sampled_from(["\n", "\r\n", "\r", "\n\n", "\n# note\n", " \n"])
rows = st.lists(st.tuples(tokens, tokens, st.none() | tokens), min_size=1, max_size=6)


@anywhere
@given(rows, st.data())
@example([("0", "1", "1.5"), ("1", "2", "2")], None)
def test_reader_equals_its_slow_twin(tmp_path, rows, data):
    pick = (lambda strategy: data.draw(strategy)) if data else (lambda strategy: "\n")
    text = ""
    for row in rows:
        joint = pick(blanks) if data else " "
        text += joint.join(x for x in row if x is not None) + pick(line_ends)
    if data and data.draw(st.booleans()):
        text = text.rstrip("\r\n ")
    expected = slow_twin(text)
    if expected is None:
        with pytest.raises(InputError):
            read(tmp_path, text, delimiter=" ", header=False)
        return
    graph = read(tmp_path, text, delimiter=" ", header=False)
    labels, total, weighted = expected
    assert graph.labels.tolist() == labels
    assert (graph.weights is not None) == weighted
    got = dict(zip(graph.edges(), graph.weights if weighted else [1] * len(total), strict=True))
    assert set(got) == set(total)
    if weighted:
        for edge, weight in total.items():
            assert got[edge] == pytest.approx(weight, rel=1e-12)


def test_many_labels_grow_the_table(tmp_path):
    rng = np.random.default_rng(0)
    pairs = rng.integers(-(10**12), 10**12, size=(50_000, 2))
    pairs[::3] = pairs[0]
    path = tmp_path / "many.txt"
    np.savetxt(path, pairs, fmt="%d")
    graph, twin = read_edgelist(path), DiGraph.from_edges(pairs)
    assert graph.labels.tolist() == twin.labels.tolist()
    assert edges(graph) == edges(twin)
    text = read(tmp_path, path.read_text() + "a b\n")
    assert text.labels.tolist() == [*map(str, twin.labels.tolist()), "a", "b"]


@anywhere
@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1))
def test_weights_are_read_exactly(tmp_path, numbers):
    text = "".join(f"{i} {i + 1} {number!r}\n" for i, number in enumerate(numbers))
    weights = read(tmp_path, text).weights
    assert weights is not None
    assert weights.tolist() == numbers


@anywhere
@given(st.binary(max_size=60) | st.text(alphabet='01ab \t,;"#%\n\r.e-\ufeff', max_size=40))
def test_anything_is_a_graph_or_an_input_error(tmp_path, text):
    for options in ({}, {"quotes": False, "comments": ""}, {"header": True, "delimiter": ","}):
        try:
            graph = read(tmp_path, text, **options)
        except InputError:
            continue
        assert graph.n_edges >= 1
        assert np.unique(graph.labels.astype(str)).size == graph.n_nodes


labels = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6)
odd = labels | st.text(alphabet='01 \t,;"#%\n\r\ufeff', max_size=4) | st.just("source")
names = st.sampled_from(["g.txt", "g.csv", "g.tsv", "g.txt.gz", "g.csv.gz", "g.edges"])


@anywhere
@given(
    st.lists(st.tuples(odd, odd), min_size=1, max_size=8),
    names,
    st.sampled_from([None, None, ",", ";", "\t", " "]),
    st.booleans(),
)
@example([("source", "target"), ("1", "2")], "g.txt", None, False)
@example([("a", "b"), ("1", "2")], "g.txt", None, False)
@example([("\ufeffa", "b")], "g.txt", " ", True)
@example([("source", "\n%")], "g.txt", None, True)
@example([("\n%", "source"), (" 0", "source")], "g.txt", " ", False)
@example([("a\n\n\tb", "c"), ("1", "2")], "g.txt", " ", True)
def test_round_trip_with_odd_labels(tmp_path, pairs, name, delimiter, weighted):
    weights = np.arange(len(pairs)) / 3 if weighted else None
    graph = DiGraph.from_edges(pairs, weights=weights)
    path = tmp_path / name
    write_edgelist(graph, path, delimiter=delimiter)
    again = read_edgelist(path)
    pairs_again = {(str(u), str(v)) for u, v in again.edges()}
    assert pairs_again == set(graph.edges())
    if graph.weights is None:
        assert again.weights is None
    else:
        assert again.weights is not None
        assert sorted(again.weights.tolist()) == sorted(graph.weights.tolist())


def test_pairs_are_written_in_their_order(tmp_path):
    path = tmp_path / "pairs.txt"
    write_edgelist([(3, 1), (2, 9), (3, 1)], path)
    assert path.read_text() == "3\t1\n2\t9\n3\t1\n"
    write_edgelist(np.array([[3, 1]]), path, header=True, delimiter=",")
    assert path.read_text() == "source,target\n3,1\n"
    write_edgelist([], path)
    assert path.read_text() == ""


def test_zipped_files_are_the_same_bytes(tmp_path):
    graph = DiGraph.from_edges([("a", "b")], weights=[2.0])
    write_edgelist(graph, tmp_path / "one.txt.gz")
    write_edgelist(graph, tmp_path / "two.txt.gz")
    assert (tmp_path / "one.txt.gz").read_bytes() == (tmp_path / "two.txt.gz").read_bytes()
    assert gzip.decompress((tmp_path / "one.txt.gz").read_bytes()) == b"a\tb\t2\n"


def test_what_cannot_be_written(tmp_path):
    path = tmp_path / "g.txt"
    for pairs, message in (
        ([(1, "1")], "both written as '1'"),
        ([("a\0", "b")], "NUL"),
        ([("\ud800", "b")], "not valid Unicode"),
    ):
        with pytest.raises(InputError, match=message):
            write_edgelist(pairs, path)
    with pytest.raises(InputError, match="does not exist"):
        write_edgelist([(1, 2)], tmp_path / "missing" / "g.txt")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.data
@pytest.mark.parametrize(
    ("name", "nodes", "edges", "loops"),
    [
        ("wiki-Vote", 7115, 103_689, 0),
        ("p2p-Gnutella31", 62_586, 147_892, 0),
        ("cit-HepPh", 34_546, 421_578, 44),
        ("wordnet-noun-hypernym", 74_401, 75_850, 0),
    ],
)
def test_real_graphs(data_dir, name, nodes, edges, loops):
    path = data_dir / "graphs" / f"{name}.txt.gz"
    graph = read_edgelist(path)
    assert (graph.n_nodes, graph.n_edges, graph.n_self_loops) == (nodes, edges, loops)
    with gzip.open(path, "rt") as lines:
        rows = [line.split() for line in lines if not line.startswith("#")]
    first = list(dict.fromkeys(label for row in rows for label in row))
    assert list(map(str, graph.labels.tolist())) == first
    assert {(str(u), str(v)) for u, v in graph.edges()} == set(map(tuple, rows))
