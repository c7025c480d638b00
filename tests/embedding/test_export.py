"""Vectors for other programs."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from atpgraph import ATP, InputError
from atpgraph.embedding.files import export
from tests.embedding.models import model


def read_word2vec(path: Path) -> dict[str, np.ndarray]:
    lines = path.read_text().splitlines()
    n, k = map(int, lines[0].split())
    vectors = {}
    for line in lines[1:]:
        word, *numbers = line.split(" ")
        assert len(numbers) == k
        vectors[word] = np.array(numbers, dtype=np.float32)
    assert len(vectors) == n
    return vectors


def test_word2vec(tmp_path: Path) -> None:
    saved = model("text")
    files = export(saved, "word2vec", tmp_path / "v")
    assert [file.name for file in files] == ["source.txt", "target.txt"]
    for file, vectors in zip(files, (saved.source_, saved.target_), strict=True):
        read = read_word2vec(file)
        assert list(read) == saved.labels_.tolist()
        assert np.stack(list(read.values())) == pytest.approx(vectors, rel=1e-6)


def test_word2vec_and_white_space(tmp_path: Path) -> None:
    blank = ATP(n_components=1).fit([("a b", "c\nd")])
    assert set(read_word2vec(export(blank, "word2vec", tmp_path / "v")[0])) == {"a_b", "c_d"}
    clash = ATP(n_components=1).fit([("a b", "a_b")])
    with pytest.raises(InputError, match="white space"):
        export(clash, "word2vec", tmp_path / "w")


def test_parquet_and_numpy(tmp_path: Path) -> None:
    saved = model()
    (file,) = export(saved, "parquet", tmp_path / "v.parquet")
    table = pq.read_table(file).to_pydict()
    assert table["node"] == saved.labels_.tolist()
    assert table["level"] == saved.levels_.tolist()
    written = np.array(table["target"], dtype=np.float32)
    assert written.tobytes() == saved.target_.astype(np.float32).tobytes()
    source, target, labels = export(saved, "npy", tmp_path / "v")
    assert np.load(source).tobytes() == saved.source_.tobytes()
    assert np.load(target).tobytes() == saved.target_.tobytes()
    assert json.loads(labels.read_text()) == saved.labels_.tolist()
    with pytest.raises(InputError, match="no format"):
        export(saved, "xlsx", tmp_path / "v")


def test_csv(tmp_path: Path) -> None:
    saved = model("text")
    (file,) = export(saved, "csv", tmp_path / "v.csv")
    with file.open(newline="") as opened:
        header, *rows = csv.reader(opened)
    assert header == [
        "node",
        "level",
        *(f"{s}_{k}" for s in ("source", "target") for k in range(3)),
    ]
    assert [row[0] for row in rows] == saved.labels_.tolist()
    assert [int(row[1]) for row in rows] == saved.levels_.tolist()
    both = np.concatenate([saved.source_, saved.target_], axis=1)
    assert np.array([row[2:] for row in rows], dtype=float) == pytest.approx(both, rel=1e-6)


def test_csv_gives_a_spreadsheet_nothing_to_run(tmp_path: Path) -> None:
    risky = ["=1+1", "+1", "-1", "@x", "\tx", "\rx", "'=1", 'say "hi", then\nbye', "plain"]
    (file,) = export(
        ATP(n_components=1).fit([(name, "end") for name in risky]), "csv", tmp_path / "v"
    )
    with file.open(newline="") as opened:
        names = [row[0] for row in csv.reader(opened)][1:]
    assert names == ["'=1+1", "end", "'+1", "'-1", "'@x", "'\tx", "'\rx", *risky[6:]]
    (numbers,) = export(ATP(n_components=1).fit([(-1, -2)]), "csv", tmp_path / "n")
    assert [line.split(",")[0] for line in numbers.read_text().splitlines()] == ["node", "-1", "-2"]


def test_a_table_to_standard_output(tmp_path: Path, capfdbinary: pytest.CaptureFixture) -> None:
    saved = model()
    export(saved, "csv", "-")
    (file,) = export(saved, "csv", tmp_path / "v")
    assert capfdbinary.readouterr().out == file.read_bytes()
    with pytest.raises(InputError, match="several files"):
        export(saved, "npy", "-")
