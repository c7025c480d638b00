"""Model files and exports."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from atpgraph import ATP, InputError
from atpgraph.embedding.export import export
from atpgraph.graph import generators


def model(labels: str = "int") -> ATP:
    graph = generators.noisy_hierarchy(40, 120, 10, random_state=0).graph
    edges = list(graph.edges())
    if labels == "text":
        edges = [(f"n{u}", f"n{v}") for u, v in edges]
    elif labels == "mixed":
        edges = [(("t", u), v) for u, v in edges]
    return ATP(n_components=3, random_state=2).fit(edges)


@pytest.mark.parametrize("labels", ["int", "text", "mixed"])
def test_save_and_load(tmp_path: Path, labels: str) -> None:
    saved = model(labels)
    path = tmp_path / "model.npz"
    saved.save(path)
    loaded = ATP.load(path)
    assert loaded.labels_.tolist() == saved.labels_.tolist()
    assert loaded.source_.tobytes() == saved.source_.tobytes()
    assert loaded.target_.tobytes() == saved.target_.tobytes()
    assert loaded.levels_.tolist() == saved.levels_.tolist()
    assert loaded.removed_edges_ == saved.removed_edges_
    assert loaded.get_params() == saved.get_params()
    node = saved.labels_[0]
    expected, got = saved.fold_in([node], []), loaded.fold_in([node], [])
    assert got[0].tobytes() == expected[0].tobytes()
    first = path.read_bytes()
    saved.save(path)
    assert path.read_bytes() == first
    assert list(tmp_path.iterdir()) == [path]


def test_a_callable_kernel_is_saved_as_its_values(tmp_path: Path) -> None:
    saved = ATP(n_components=2, kernel=np.sqrt).fit([(0, 1), (1, 2)])
    saved.save(tmp_path / "m.npz")
    loaded = ATP.load(tmp_path / "m.npz")
    assert loaded.kernel is None
    assert loaded.fold_in([0], [])[0].tobytes() == saved.fold_in([0], [])[0].tobytes()


def test_labels_that_cannot_be_saved_are_named(tmp_path: Path) -> None:
    saved = ATP(n_components=2).fit([(frozenset({1}), "b")])
    with pytest.raises(InputError, match="frozenset"):
        saved.save(tmp_path / "m.npz")
    assert list(tmp_path.iterdir()) == []


class Bomb:
    def __reduce__(self) -> tuple:
        return (print, ("this must never run",))


def test_what_is_no_model_is_refused_and_never_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.npz"
    cases = {
        "empty": b"",
        "text": b"hello",
        "pickle": pickle.dumps(Bomb()),
        "cut": None,
    }
    model().save(path)
    whole = path.read_bytes()
    cases["cut"] = whole[: len(whole) // 2]
    for content in cases.values():
        path.write_bytes(content)
        with pytest.raises(InputError, match="model"):
            ATP.load(path)
    np.savez(path, description=np.array([Bomb()], dtype=object))
    with pytest.raises(InputError, match="damaged"):
        ATP.load(path)
    np.savez(path, other=np.zeros(3))
    with pytest.raises(InputError, match="not an atpgraph model"):
        ATP.load(path)
    assert "must never run" not in capsys.readouterr().out
    with pytest.raises(InputError, match="does not exist"):
        ATP.load(tmp_path / "none.npz")
    with pytest.raises(InputError, match="directory"):
        ATP.load(tmp_path)


def change(path: Path, **arrays: object) -> None:
    with np.load(path) as archive:
        content = dict(archive)
    np.savez(path, **(content | arrays))


def test_newer_versions_and_arrays_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    model().save(path)
    with np.load(path) as archive:
        description = json.loads(archive["description"].tobytes())
        targets = archive["targets"]
    raw = json.dumps(description | {"version": 99}).encode()
    change(path, description=np.frombuffer(raw, dtype=np.uint8))
    with pytest.raises(InputError, match="version 99"):
        ATP.load(path)
    model().save(path)
    change(path, targets=targets + 1000)
    with pytest.raises(InputError, match="fit together"):
        ATP.load(path)
    model().save(path)
    change(path, source=np.zeros((2, 3), dtype=np.float32))
    with pytest.raises(InputError, match="fit together"):
        ATP.load(path)


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
    assert [file.name for file in files] == ["v.source.txt", "v.target.txt"]
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
    assert np.array(table["target"], dtype=np.float32).tobytes() == saved.target_.tobytes()
    source, target, labels = export(saved, "npy", tmp_path / "v")
    assert np.load(source).tobytes() == saved.source_.tobytes()
    assert np.load(target).tobytes() == saved.target_.tobytes()
    assert json.loads(labels.read_text()) == saved.labels_.tolist()
    with pytest.raises(InputError, match="no format"):
        export(saved, "csv", tmp_path / "v")
