"""Model files: what comes back, and what is refused."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from atpgraph import ATP, DiGraph, InputError
from tests.embedding.models import model


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


def describe(path: Path, **changes: object) -> None:
    """Change entries of the description; None takes one out."""
    with np.load(path) as archive:
        content = dict(archive)
    description = json.loads(content["description"].tobytes()) | changes
    kept = {name: value for name, value in description.items() if value is not None}
    content["description"] = np.frombuffer(json.dumps(kept).encode(), dtype=np.uint8)
    np.savez(path, **content)


def test_what_was_chosen_and_how_good_it_is_come_back(tmp_path: Path) -> None:
    for purpose in ("reachability", "paper"):
        saved = ATP(4, purpose=purpose).fit([(0, 1), (1, 2), (3, 2)])
        saved.save(tmp_path / "m.npz")
        loaded = ATP.load(tmp_path / "m.npz")
        for name in ("settings_", "margin_", "threshold_", "n_reachable_pairs_"):
            assert getattr(loaded, name) == getattr(saved, name), name
        assert str(loaded.fidelity_) == str(saved.fidelity_)


def test_files_of_earlier_versions_are_read(tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    saved = ATP(4, purpose="paper", zero_weight="auto").fit([(0, 1), (1, 2), (3, 2)])
    how = saved.settings_
    old = {"solver": "nnls", "closure": "auto", "sketch_size": "auto", "tol": 1e-4, "c": 0.0}
    second = {
        "version": 2, "params": saved.get_params() | old | {"purpose": "links", "memory": None},
        "solver": "nnls", "settings": None, "extras": 3, "zero_weight": how.zero_weight,
        "regularization": how.regularization,
    }  # fmt: skip
    first = second | {"version": 1, "solver": None, "margin": None, "fidelity": None}
    first["params"] = {k: v for k, v in second["params"].items() if k not in ("purpose", "memory")}
    for changes in (first, second):
        saved.save(path)
        describe(path, **changes)
        loaded = ATP.load(path)
        assert (loaded.purpose, loaded.zero_weight, loaded.margin_) == ("paper", "auto", 0.0)
        assert loaded.fidelity_ is None  # earlier versions measured other things
        assert loaded.fold_in([1])[0].tobytes() == saved.fold_in([1])[0].tobytes()
        loaded.save(path)
        assert ATP.load(path).source_.tobytes() == saved.source_.tobytes()
    describe(path, **second | {"solver": "svd"})
    with pytest.raises(InputError, match="solver='svd'"):
        ATP.load(path)


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
    with pytest.raises(InputError, match="past the end"):
        ATP.load(path)
    model().save(path)
    change(path, source=np.zeros((2, 3), dtype=np.float32))
    with pytest.raises(InputError, match="'source' has 2 entries"):
        ATP.load(path)


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("source", lambda a: np.full_like(a, np.nan)),
        ("target", lambda a: np.where(np.arange(a.shape[1]) == 0, np.inf, a)),
        ("levels", lambda a: np.full_like(a, -(2**31))),
        ("weights", lambda a: np.ones(len(a) + 1)),
        ("labels", lambda a: np.full_like(a, a[0])),
    ],
)
def test_garbage_is_not_accepted_in_silence(tmp_path: Path, name: str, spoil: Any) -> None:
    path = tmp_path / "m.npz"
    ATP(n_components=2).fit(DiGraph.from_edges([(1, 2), (2, 3)], weights=[0.5, 2.0])).save(path)
    ATP.load(path)
    with np.load(path) as archive:
        whole = archive[name]
    change(path, **{name: spoil(whole)})
    with pytest.raises(InputError, match="damaged"):
        ATP.load(path)


def test_parameters_may_be_numbers_of_numpy(tmp_path: Path) -> None:
    params = {"n_components": 4, "max_iter": 3, "random_state": 5, "regularization": 0.25}
    given = {name: np.array(value)[()] for name, value in params.items()}
    saved = ATP(**given, verbose=np.bool_(False)).fit([(0, 1), (1, 2)], work=tmp_path / "work")
    saved.save(tmp_path / "m.npz")
    assert ATP.load(tmp_path / "m.npz").get_params() == ATP(**params).get_params()


@pytest.mark.parametrize("label", [float("inf"), (1, float("nan"))])
def test_labels_that_could_not_be_read_are_not_saved(tmp_path: Path, label: object) -> None:
    saved = ATP(n_components=2, max_iter=1).fit([(label, "b")])
    with pytest.raises(InputError, match="which a file cannot hold"):
        saved.save(tmp_path / "m.npz")
