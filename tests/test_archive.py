"""Files from strangers: what is not exactly an archive of ours is refused with a sentence."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from atpgraph import InputError
from atpgraph.util.archive import (
    Field,
    archive_format,
    as_bytes,
    check_pointers,
    parse_json,
    pointers,
    read_archive,
    read_json,
    text,
    unique_names,
    write_archive,
)

FIELDS = {
    "vectors": Field("f", ("n", "k")),
    "indptr": pointers("n", "m"),
    "targets": Field("i", ("m",), low=0, high="n"),
    "labels": Field("i", ("n",), unique=True, optional=True),
    "words": text(optional=True),
}
ABOUT = {"format": "toy", "version": 3, "n_iter": 2}
HINT = "a toy; make one with 'atp toy'"


def arrays() -> dict[str, Any]:
    return {
        "vectors": np.arange(6, dtype=np.float32).reshape(3, 2),
        "indptr": np.array([0, 1, 2, 2]),
        "targets": np.array([1, 2], dtype=np.int32),
        "labels": np.array([5, 7, 9]),
        "words": as_bytes("héllo"),
    }


def read(path: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    def restore(about: dict[str, Any], content: dict[str, Any]) -> Any:
        check_pointers(content["indptr"], len(content["targets"]))
        return about, content

    return read_archive(path, "toy", 3, HINT, FIELDS, restore)


@pytest.fixture
def toy(tmp_path) -> Path:
    write_archive(tmp_path / "toy.npz", ABOUT, arrays())
    return tmp_path / "toy.npz"


def test_what_was_written_comes_back(toy) -> None:
    about, content = read(toy)
    assert about["n_iter"] == 2
    for name, array in arrays().items():
        assert np.array_equal(content[name], array)
        assert content[name].dtype == array.dtype
    assert archive_format(toy) == "toy"


def test_the_same_content_gives_the_same_bytes(toy, tmp_path) -> None:
    write_archive(tmp_path / "again.npz", ABOUT, arrays())
    assert (tmp_path / "again.npz").read_bytes() == toy.read_bytes()


@pytest.mark.parametrize(
    "change",
    [
        {"vectors": np.full((3, 2), np.nan)},
        {"vectors": np.full((3, 2), np.inf)},
        {"vectors": np.zeros((4, 2))},
        {"vectors": np.zeros(6)},
        {"vectors": np.zeros((3, 2), dtype=np.int64)},
        {"vectors": np.zeros((3, 2), dtype=complex)},
        {"vectors": np.array([["a", "b"]] * 3)},
        {"targets": np.array([1, 3])},
        {"targets": np.array([1, -1])},
        {"targets": np.array([1])},
        {"indptr": np.array([0, 2, 1, 2])},
        {"indptr": np.array([1, 1, 2, 2])},
        {"indptr": np.array([0, 1, 2])},
        {"labels": np.array([5, 5, 9])},
        {"more": np.zeros(3)},
        {"targets": None},
    ],
    ids=str,
)
def test_arrays_that_do_not_fit(tmp_path, change) -> None:
    content = {name: array for name, array in {**arrays(), **change}.items() if array is not None}
    write_archive(tmp_path / "bad.npz", ABOUT, content)
    with pytest.raises(InputError, match=r"bad\.npz is damaged or not a toy"):
        read(tmp_path / "bad.npz")


def rewritten(path: Path, **members: bytes) -> None:
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, raw in (content | {f"{key}.npy": raw for key, raw in members.items()}).items():
            archive.writestr(name, raw)


def npy(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def header(shape: tuple[int, ...], data: bytes = b"") -> bytes:
    file = io.BytesIO()
    about = {"descr": "<f4", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, about)
    return file.getvalue() + data


@pytest.mark.parametrize(
    "raw",
    [
        header((10**12, 2)),
        header((3, 2), b"\0" * 23),
        header((3, 2), b"\0" * 25),
        header((-3, -2), b"\0" * 24),
        b"",
        b"\x93NUMPY",
        b"\x93NUMPY\x09\x00" + b"\0" * 200,
        npy(np.array([[{}] * 2] * 3, dtype=object)),
    ],
    ids=["huge", "short", "long", "negative", "empty", "magic", "version", "objects"],
)
def test_members_that_are_no_arrays(toy, raw) -> None:
    rewritten(toy, vectors=raw)
    with pytest.raises(InputError, match="damaged"):
        read(toy)


@pytest.mark.parametrize(
    "raw",
    [
        json.dumps({**ABOUT, "format": "other"}),
        json.dumps({**ABOUT, "version": 4}),
        json.dumps({**ABOUT, "x": float("nan")}),
        json.dumps([]),
        "[" * 100_000,
        "{",
        "",
    ],
    ids=["format", "version", "nan", "list", "deep", "cut", "empty"],
)
def test_descriptions_that_do_not_fit(toy, raw) -> None:
    rewritten(toy, description=npy(as_bytes(raw)))
    with pytest.raises(InputError):
        read(toy)


def test_compressed_members_are_refused(tmp_path) -> None:
    about = {**arrays(), "description": as_bytes(json.dumps(ABOUT))}
    np.savez_compressed(tmp_path / "bomb.npz", **about)
    with pytest.raises(InputError, match="compressed"):
        read(tmp_path / "bomb.npz")


@given(st.data())
def test_damage_is_refused_or_changes_nothing_that_is_checked(tmp_path_factory, data) -> None:
    path = tmp_path_factory.mktemp("damage") / "toy.npz"
    write_archive(path, ABOUT, arrays())
    raw = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(raw) - 1))
        raw[place] = data.draw(st.integers(0, 255))
    if data.draw(st.booleans()):
        del raw[data.draw(st.integers(0, len(raw))) :]
    path.write_bytes(raw)
    try:
        _, content = read(path)
    except InputError as error:
        outcome = str(error)
    else:
        outcome = "read"
        for name, array in arrays().items():
            assert name not in content or np.array_equal(content[name], array)
    assert "\n" not in outcome


def test_objects_are_not_written(tmp_path) -> None:
    with pytest.raises(TypeError, match="no Python objects"):
        write_archive(tmp_path / "toy.npz", ABOUT, {"a": np.array([{}], dtype=object)})
    assert not list(tmp_path.iterdir())


def test_json_files(tmp_path) -> None:
    path = tmp_path / "a.json"
    with pytest.raises(InputError, match="make one"):
        read_json(path, HINT)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="damaged"):
        read_json(path, HINT)
    path.write_text('{"a": [1, 2.5]}')
    assert read_json(path, HINT) == {"a": [1, 2.5]}
    with pytest.raises(ValueError, match="Infinity"):
        parse_json("[Infinity]")
    with pytest.raises(ValueError, match="1e999"):
        parse_json('{"a": [1e999]}')


def test_labels_twice() -> None:
    unique_names(["a", ("a",), 1])
    with pytest.raises(ValueError, match="twice"):
        unique_names(["a", "b", "a"])
