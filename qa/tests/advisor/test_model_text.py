"""Trained models with vectors: saved, opened, damaged, and without the text model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from atpgraph.errors import InputError, MissingDependencyError
from atpgraph_qa import Advisor, Newcomer, Question, Site
from atpgraph_qa.text import choice
from qa.tests.conftest import SMALL, TEXT
from qa.tests.text.tiny import write_model

pytest.importorskip("onnxruntime", reason="text models need the extra 'dense'")
pytest.importorskip("tokenizers", reason="text models need the extra 'dense'")
QUESTION = Question("How do I keep aphids off the tomatoes?", tags=["tomatoes"], asker=7)


@pytest.fixture(scope="module")
def own(site: Site, tmp_path_factory: pytest.TempPathFactory) -> tuple[Advisor, Path]:
    """Trained with a text model of one's own, which is gone afterwards."""
    folder = write_model(tmp_path_factory.mktemp("text") / "mine")
    advisor = Advisor.fit(site, text=folder, plan=SMALL, n_components=4)
    path = advisor.save(tmp_path_factory.mktemp("trained") / "model")
    expected = advisor.ask(QUESTION)
    shutil.rmtree(folder)
    assert advisor.ask(QUESTION) == expected
    return advisor, path


def test_a_model_of_ones_own_travels_with_the_folder(own: tuple[Advisor, Path]) -> None:
    advisor, path = own
    opened = Advisor.load(path)
    assert opened.ask(QUESTION) == advisor.ask(QUESTION)
    model = opened.history.records.text_model
    assert model is not None
    assert model.name == "mine"
    again = opened.save(path.parent / "again")
    assert Advisor.load(again).ask(QUESTION) == advisor.ask(QUESTION)
    found = opened.welcome([Newcomer(9001, tags=("tomatoes",))]).ask(QUESTION)
    assert len(found.people) == 5


def test_the_same_folder_twice_has_the_same_bytes(own: tuple[Advisor, Path]) -> None:
    _, path = own
    other = Advisor.load(path).save(path.parent / "twin")
    for name in ("vectors.npz", "text-model.onnx", "text-tokenizer.json"):
        assert (other / name).read_bytes() == (path / name).read_bytes()


def test_damage_is_one_sentence(own: tuple[Advisor, Path], tmp_path: Path) -> None:
    _, path = own
    broken = shutil.copytree(path, tmp_path / "broken")
    (broken / "text-tokenizer.json").write_text("{}")
    with pytest.raises(InputError, match=r"a different text model"):
        Advisor.load(broken)
    broken = shutil.copytree(path, tmp_path / "short")
    (broken / "vectors.npz").write_bytes((path / "timeline.npz").read_bytes())
    with pytest.raises(InputError, match=r"vectors\.npz"):
        Advisor.load(broken)
    broken = shutil.copytree(path, tmp_path / "unknown")
    manifest = json.loads((broken / "model.json").read_text())
    for text, why in ((7, "does not say"), ({"model": "huge", "digest": ""}, "names a text model")):
        (broken / "model.json").write_text(json.dumps({**manifest, "text": text}))
        with pytest.raises(InputError, match=why):
            Advisor.load(broken)


@pytest.mark.skipif(TEXT != "static", reason="static vectors are not installed")
def test_weights_in_a_wheel_stay_there(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    advisor = Advisor.fit(site, text="static", plan=SMALL, n_components=4)
    path = advisor.save(tmp_path / "model")
    assert not (path / "text-model.onnx").exists()
    opened = Advisor.load(path)
    assert opened.ask(QUESTION) == advisor.ask(QUESTION)
    assert advisor.update(site).history.records.text_model is not None
    vectors = opened.history.records.meaning.vectors  # type: ignore[union-attr]
    assert vectors.dtype == np.int8
    monkeypatch.setattr(choice._Shipped, "find", lambda self: None)
    with pytest.raises(MissingDependencyError, match=r"atpgraph-qa\[dense\]"):
        Advisor.load(path)
