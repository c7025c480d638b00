"""Vectors beside the site: computed once, and never trusted blindly."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from atpgraph.util.arrays import Float32Array
from atpgraph_qa import Site, ingest, simulate_community, write_dump
from atpgraph_qa.text.model import TextModel
from atpgraph_qa.text.store import question_text, text_vectors


class Letters(TextModel):
    """Counts letters, and how often it was asked."""

    name, recipe, size, files = "letters", "letters", 26, ()

    def __init__(self) -> None:
        self.asked: list[str] = []

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        self.asked += texts
        return [[ord(c) - 97 for c in text.lower() if "a" <= c <= "z"] for text in texts]

    def pooled(self, tokens: Sequence[Sequence[int]]) -> Float32Array:
        return np.array([np.bincount(each, minlength=26) for each in tokens], dtype=np.float32)


TEXTS = ["alpha", "beta", "alpha", "", "gamma delta"]


def test_texts_are_encoded_once(tmp_path: Path) -> None:
    model = Letters()
    first = text_vectors(model, TEXTS, tmp_path)
    assert first.dtype == np.float16
    np.testing.assert_array_equal(first[0], first[2])
    np.testing.assert_array_equal(first, model.encode(TEXTS).astype(np.float16))
    model.asked.clear()
    again = text_vectors(model, [*TEXTS[::-1], "epsilon"], tmp_path)
    assert model.asked == ["epsilon"]
    np.testing.assert_array_equal(again[:5], first[::-1])
    model.asked.clear()
    text_vectors(model, ["epsilon", "alpha"], tmp_path)
    assert model.asked == []


def test_nothing_is_written_without_a_site(tmp_path: Path) -> None:
    text_vectors(Letters(), TEXTS)
    assert not list(tmp_path.iterdir())


def test_another_model_has_vectors_of_its_own(tmp_path: Path) -> None:
    text_vectors(Letters(), TEXTS, tmp_path)
    other = Letters()
    other.recipe = "other letters"
    text_vectors(other, TEXTS, tmp_path)
    assert len(other.asked) == 4
    assert len(list(tmp_path.glob("vectors-*"))) == 2


@pytest.mark.parametrize("damage", ["cut", "nonsense", "shape", "order", "gone"])
def test_damage_is_computed_anew(tmp_path: Path, damage: str) -> None:
    expected = text_vectors(Letters(), TEXTS, tmp_path)
    (folder,) = tmp_path.glob("vectors-*")
    keys, vectors = folder / "keys.npy", folder / "vectors.npy"
    if damage == "cut":
        vectors.write_bytes(vectors.read_bytes()[:-8])
    elif damage == "nonsense":
        keys.write_bytes(b"\x80\x04.")  # a pickle is not read
    elif damage == "shape":
        np.save(vectors, np.zeros((2, 26), dtype=np.float16))
    elif damage == "order":
        np.save(keys, np.load(keys)[::-1])
    else:
        vectors.unlink()
    model = Letters()
    np.testing.assert_array_equal(text_vectors(model, TEXTS, tmp_path), expected)
    assert len(model.asked) == 4
    model.asked.clear()
    text_vectors(model, TEXTS, tmp_path)
    assert model.asked == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_site_that_cannot_be_written_to(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    try:
        assert len(text_vectors(Letters(), TEXTS, tmp_path)) == 5
    finally:
        tmp_path.chmod(0o755)


def test_a_foreign_folder_in_the_way_is_left_alone(tmp_path: Path) -> None:
    model = Letters()
    folder = tmp_path / f"vectors-{model.digest[:8]}"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    assert len(text_vectors(model, TEXTS, tmp_path)) == 5
    assert [file.name for file in folder.iterdir()] == ["notes.txt"]


def test_vectors_that_are_not_finite_are_made_again(tmp_path: Path) -> None:
    model = Letters()
    good = text_vectors(model, TEXTS, tmp_path)
    (file,) = tmp_path.glob("vectors-*/vectors.npy")
    kept = np.load(file)
    kept[0, 0] = np.nan
    np.save(file, kept)
    assert text_vectors(model, TEXTS, tmp_path).tobytes() == good.tobytes()


def test_vectors_survive_a_new_ingest(tmp_path: Path) -> None:
    dump = tmp_path / "dump"
    write_dump(simulate_community(30, 60, random_state=1), dump)
    ingest(dump, tmp_path / "site")
    site = Site(tmp_path / "site")
    texts = [question_text(title, "") for title in site.titles()]
    text_vectors(Letters(), texts, site.path)
    ingest(dump, tmp_path / "site")
    model = Letters()
    text_vectors(model, texts, Site(tmp_path / "site").path)
    assert model.asked == []


def test_text_of_a_question() -> None:
    assert question_text(" Trains? ", "<p>long</p>") == "Trains?"
    assert question_text("", "<p>a &lt;b&gt;\n c</p>") == "a <b> c"
    assert len(question_text("", "word " * 500)) == 300
