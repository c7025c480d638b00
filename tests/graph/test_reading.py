"""Reading in pieces: the same graph and the same errors wherever the pieces end; other formats."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from atpgraph import ATP, DiGraph, InputError, as_graph, read_edgelist
from atpgraph.errors import BudgetError
from atpgraph.graph import _text
from atpgraph.graph._numbering import Numbering
from atpgraph.graph.edgelist import read_pairs
from atpgraph.util.memory import peak_memory

anywhere = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)

tokens = st.sampled_from(
    [
        "1",
        "2",
        "30",
        "-1",
        "007",
        "a",
        "café",
        '"q"',
        '"a ""b"""',
        '"two\nlines"',
        '"x\r\ny"',
        '"',
        "",
    ]
)
ends = st.sampled_from(["\n", "\r\n", "\r", "\n\n", "\n# note\n"])
texts = st.tuples(
    st.lists(st.lists(tokens, min_size=1, max_size=3), min_size=1, max_size=12),
    st.sampled_from([" ", "\t", ","]),
    ends,
    st.sampled_from(["1,2", "1,2,3", "source,target", "citing,cited,w", "a,b"]),
)


def outcome(path: Path, **options):
    """The graph as plain values, or the sentence."""
    try:
        graph = read_edgelist(path, **options)
    except InputError as error:
        return str(error)
    weights = None if graph.weights is None else graph.weights.tolist()
    return graph.indptr.tolist(), graph.targets.tolist(), graph.labels.tolist(), weights


@anywhere
@given(texts, st.integers(1, 40))
def test_pieces_of_any_size_give_the_same(tmp_path, text, size):
    rows, separator, end, first = text
    path = tmp_path / "graph.txt"
    first = first.replace(",", separator)
    path.write_bytes((end.join([first, *map(separator.join, rows)]) + end).encode())
    whole = outcome(path, delimiter=separator)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_text, "BLOCK", size)
        patch.setattr(_text, "LEAST_BLOCK", size)
        assert outcome(path, delimiter=separator) == whole


@given(
    st.lists(
        st.sampled_from(["0", "-7", "a", "ab", "ba", "", "é", "a long name", "a long nome"]),
        max_size=30,
    )
)
def test_numbering_equals_its_slow_twin(names):
    names = names[: len(names) // 2 * 2]
    data = np.frombuffer(b"?" + "".join(names).encode(), dtype=np.uint8)
    ends = np.cumsum([1, *(len(name.encode()) for name in names)])
    spans = np.stack([ends[:-1], ends[1:]], axis=1).reshape(-1, 4)
    numbering = Numbering()
    codes = numbering.number(data, spans)
    order = list(dict.fromkeys(names))
    assert codes.reshape(-1).tolist() == [order.index(name) for name in names]
    assert numbering.labels().tolist() == order


def test_zstandard(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    text = b"".join(b"%d %d\n" % (i, i * 7 % 1000) for i in range(5000))
    path, plain = tmp_path / "g.txt.zst", tmp_path / "g.txt"
    plain.write_bytes(text)
    packed = zstandard.compress(text)
    for content in (packed, zstandard.compress(text[:100]) + zstandard.compress(text[100:])):
        path.write_bytes(content)
        assert outcome(path) == outcome(plain)
    for content, message in (
        (packed[:-9], "truncated Zstandard"),
        (packed[:20] + b"?" * 50, "damaged|truncated"),
        (packed + b"tail", "damaged|truncated"),
        (text, "not a Zstandard file"),
    ):
        path.write_bytes(content)
        with pytest.raises(InputError, match=message):
            read_edgelist(path)


def test_standard_input(monkeypatch):
    for raw in (b"a b\nb c\n", gzip.compress(b"a b\nb c\n")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
        assert list(read_edgelist("-").edges()) == [("a", "b"), ("b", "c")]


def test_parquet_equals_the_table(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "edges.parquet"
    rng = np.random.default_rng(0)
    ends = rng.integers(-50, 50, (2, 500))
    names = [[f"n{x}" for x in side] for side in ends]
    for table in (
        pa.table({"id": ends[0], "source": ends[0], "target": ends[1], "weight": rng.random(500)}),
        pa.table({"a": names[0], "b": names[1]}),
        pa.table({"to": pa.array(names[0]).dictionary_encode(), "from": names[1]}),
        pa.table({"src": ends[0].astype(np.int32), "dst": ends[1].astype(np.int8)}),
    ):
        pq.write_table(table, path, row_group_size=64)
        graph = read_edgelist(path)
        plain = table.cast(
            pa.schema(
                [
                    (f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type)
                    for f in table.schema
                ]
            )
        )
        twin = as_graph(plain)
        assert graph.labels.tolist() == twin.labels.tolist()
        assert list(graph.edges()) == list(twin.edges())
        assert (graph.weights is None) == (twin.weights is None)
        if graph.weights is not None:
            assert graph.weights.tolist() == twin.weights.tolist()
        assert read_pairs(path)[0].tolist() == twin.labels[twin.codes(_column(plain))].tolist()


def _column(table):
    names = table.column_names
    return table.column({"id": 1, "a": 0, "to": 1, "src": 0}[names[0]]).to_pylist()


def test_bad_parquet_is_one_sentence(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "edges.parquet"
    for columns, message in (
        ({"source": [1]}, "has one column"),
        ({"source": [1, None], "target": [2, 3]}, "Row 1 of .* has no 'source'"),
        ({"source": [1.5], "target": [2.5]}, "not all are 64-bit integers"),
        ({"source": [True], "target": [1]}, "node ids are integers or text"),
        ({"source": [1], "target": [2], "weight": [float("nan")]}, "weights must be finite"),
        (
            {"source": pa.array([2**63], pa.uint64()), "target": [2]},
            "not all are 64-bit integers",
        ),
        ({"source": pa.array([], pa.int64()), "target": pa.array([], pa.int64())}, "no edges"),
    ):
        pq.write_table(pa.table(columns), path)
        with pytest.raises(InputError, match=message):
            read_edgelist(path)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(InputError, match="damaged"):
        read_edgelist(path)


def test_parquet_ids_are_text_with_something_in_it(tmp_path):
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "edges.parquet"
    raw = pa.array([b"ok", "café".encode(), b"caf\xc3"])
    broken = pa.Array.from_buffers(pa.string(), 3, raw.buffers())
    for dictionary in (True, False):
        pq.write_table(
            pa.table({"source": ["a", "b", "c"], "target": broken}), path, use_dictionary=dictionary
        )
        with pytest.raises(InputError, match=r"Row 2 of .* 'target' that are not UTF-8"):
            read_edgelist(path)
    pq.write_table(pa.table({"source": ["a", ""], "target": ["b", "c"]}), path)
    with pytest.raises(InputError, match=r"Row 1 of .* nothing in 'source'"):
        read_edgelist(path)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no such device")
def test_what_never_ends_is_rejected_at_once(tmp_path):
    sparse = tmp_path / "zeros.txt"
    with sparse.open("wb") as file:
        file.truncate(50 << 30)
    for path in (Path("/dev/zero"), sparse):
        with peak_memory() as peak, pytest.raises(InputError, match="line 1: not UTF-8"):
            read_edgelist(path)
        assert peak.bytes is None or peak.bytes < 100_000_000
    with pytest.raises(InputError, match="not a regular file"):
        ATP.load("/dev/zero")


def test_a_line_without_end_is_rejected(tmp_path):
    path = tmp_path / "line.txt"
    path.write_bytes(b"x" * (65 << 20))
    with pytest.raises(InputError, match="line 1: a line of more than 64 MiB"):
        read_edgelist(path)


def test_reading_counts_against_the_budget(tmp_path):
    path = tmp_path / "large.txt"
    path.write_bytes(b"".join(b"%d %d\n" % (i, i + 1) for i in range(400_000)))
    with pytest.raises(BudgetError, match=r"at least .* to be read, and the budget is 10.0 MB"):
        read_edgelist(path, memory="10MB")
    assert read_edgelist(path, memory="200MB").n_edges == 400_000
    assert isinstance(as_graph(path, memory="200MB"), DiGraph)
    with pytest.raises(BudgetError):
        as_graph(path, memory="10MB")
    path.write_bytes(b'"' + b"x" * 60_000_000)  # one field that never ends
    with pytest.raises(BudgetError):
        read_edgelist(path, memory="10MB")
