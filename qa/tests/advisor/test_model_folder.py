"""The model folder: whole or not at all, and nothing that is damaged is used."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atpgraph import ATP
from atpgraph.errors import InputError
from atpgraph_qa import Advisor, Question, Site, ingest, simulate_community, write_dump
from atpgraph_qa.advisor import model_folder
from atpgraph_qa.advisor.model_folder import MANIFEST, ModelFolder


@pytest.fixture
def copy(model: Path, tmp_path: Path) -> Path:
    return shutil.copytree(model, tmp_path / "copy")


def change(folder: Path, name: str, **arrays: Any) -> None:
    """Write an archive again with some arrays replaced."""
    with np.load(folder / name) as archive:
        content = dict(archive)
    content |= arrays
    np.savez(folder / name, **content)


def arrays(folder: Path, name: str = "timeline.npz") -> dict[str, np.ndarray]:
    with np.load(folder / name) as archive:
        return dict(archive)


def test_the_same_training_gives_the_same_bytes(
    advisor: Advisor, model: Path, tmp_path: Path
) -> None:
    advisor.save(tmp_path / "again")
    for file in sorted(model.iterdir()):
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes(), file.name


def test_no_bodies_are_kept(site: Site, model: Path) -> None:
    body = max(site.question_bodies(), key=len)
    phrase = body[len(body) // 2 :][:40].encode()
    assert not any(phrase in file.read_bytes() for file in model.iterdir())


def test_a_model_is_replaced_at_the_end_or_stays(
    advisor: Advisor, copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {file.name: file.read_bytes() for file in copy.iterdir()}
    for where in ("timeline.npz", "expertise.npz"):

        def fail(path: Path, *rest: Any, where: str = where) -> None:
            if Path(path).name == where:
                raise KeyboardInterrupt
            Path(path).write_bytes(b"half")

        with monkeypatch.context() as patch:
            patch.setattr(model_folder, "write_archive", fail)
            patch.setattr(ATP, "save", lambda self, path, fail=fail: fail(path))
            with pytest.raises(KeyboardInterrupt):
                advisor.save(copy)
        assert {file.name: file.read_bytes() for file in copy.iterdir()} == before
        assert [entry.name for entry in copy.parent.iterdir()] == ["copy"]
    advisor.save(copy)
    (copy / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match="other files"):
        advisor.save(copy)


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda folder: shutil.rmtree(folder), "does not exist"),
        (lambda folder: (folder / MANIFEST).unlink(), "is not a trained model"),
        (lambda folder: (folder / MANIFEST).write_text("{"), "damaged"),
        (lambda folder: (folder / MANIFEST).write_text("[]"), "is not a trained model"),
        (lambda folder: (folder / MANIFEST).write_text('{"format": "x"}'), "is not a trained"),
        (lambda folder: (folder / "timeline.npz").unlink(), "does not exist"),
        (lambda folder: (folder / "timeline.npz").write_bytes(b"nothing"), "damaged"),
        (lambda folder: (folder / "expertise.npz").write_bytes(b"PK"), "damaged"),
        (lambda folder: (folder / "levels.npz").write_text("text"), "damaged"),
    ],
)
def test_what_is_no_model_is_refused(copy: Path, make: Callable[[Path], object], why: str) -> None:
    make(copy)
    with pytest.raises(InputError, match=why) as caught:
        Advisor.load(copy).expertise  # noqa: B018
    assert "\n" not in str(caught.value)


def test_a_file_is_no_model(tmp_path: Path) -> None:
    ATP(n_components=2).fit([("a", "b")]).save(tmp_path / "old.npz")
    with pytest.raises(InputError, match="is a file, and not a trained model"):
        Advisor.load(tmp_path / "old.npz")


def rewrite(folder: Path, **entries: Any) -> None:
    manifest = json.loads((folder / MANIFEST).read_text())
    (folder / MANIFEST).write_text(json.dumps(manifest | entries))


def test_other_versions_are_refused(copy: Path) -> None:
    rewrite(copy, version=2)
    with pytest.raises(InputError, match=r"version 2.*reads version 1: train it again"):
        Advisor.load(copy)


def test_a_router_with_other_features_is_refused(copy: Path) -> None:
    router = json.loads((copy / MANIFEST).read_text())["router"]
    for bad in (
        {"features": ["answers"]},
        {"model": None},
        {"pool": "own"},
        {"model": {**router["model"], "weight": router["model"]["weight"][:-1]}},
        {"model": {**router["model"], "scale": [0.0] * len(router["features"])}},
    ):
        rewrite(copy, router={**router, **bad})
        with pytest.raises(InputError, match="train the model again"):
            Advisor.load(copy)


def test_another_site_is_refused(model: Path, site: Site, tmp_path: Path) -> None:
    folder = ModelFolder.open(model)
    assert folder.expertise_of(site).model.n_components == 8
    write_dump(simulate_community(40, 80, n_topics=2, random_state=9), tmp_path / "dump")
    ingest(tmp_path / "dump", tmp_path / "site")
    with pytest.raises(InputError, match="trained on a different site"):
        folder.expertise_of(Site(tmp_path / "site"))


SPOILT = {
    "answers_question": lambda a: np.where(np.arange(len(a)) == 3, 10**6, a),
    "answers_owner": lambda a: np.where(np.arange(len(a)) == 3, -2, a),
    "questions_asker": lambda a: np.where(np.arange(len(a)) == 0, 10**6, a),
    "questions_asked_ms": lambda a: a[::-1].copy(),
    "questions_present": lambda a: a.astype(np.int64),
    "acceptances_answer": lambda a: np.where(np.arange(len(a)) == 0, -1, a),
    "acceptances_known_ms": lambda a: a[:-1],
    "votes_value": lambda a: a * 9,
    "users": lambda a: a[::-1].copy(),
    "tags_indptr": lambda a: np.where(np.arange(len(a)) == 5, 10**9, a),
    "tags_indptr falls": lambda a: np.where(np.arange(len(a)) == 5, 0, a),
    "tags_indptr ends early": lambda a: np.minimum(a, a[-1] - 1),
    "tags_indptr starts late": lambda a: np.maximum(a, 1),
    "tags_tags": lambda a: np.where(np.arange(len(a)) == 0, 10**6, a),
    "words_indices backwards": lambda a: a[::-1].copy(),
    "words_indptr": lambda a: np.minimum(a, a[2]),
    "words_indptr with an empty last column": lambda a: np.append(a[:-2], [a[-1], a[-1]]),
    "words_indptr falls": lambda a: np.where(np.arange(len(a)) == 5, 0, a),
    "words_indices one past the end": lambda a: np.where(a == a.max(), a.max() + 1, a),
    "words_indices": lambda a: np.where(np.arange(len(a)) == len(a) // 2, 2**31 - 1, a),
    "words_data": lambda a: np.where(np.arange(len(a)) == 0, np.nan, a),
    "titles": lambda a: np.frombuffer(b'["one"]', np.uint8),
    "words": lambda a: np.frombuffer(b"[1, 2]", np.uint8),
    "tags": lambda a: np.frombuffer(b"[]", np.uint8),
}


@pytest.mark.parametrize("name", list(SPOILT))
def test_arrays_are_checked_before_they_are_used(copy: Path, name: str) -> None:
    array = name.partition(" ")[0]
    change(copy, "timeline.npz", **{array: SPOILT[name](arrays(copy)[array])})
    with pytest.raises(InputError, match="damaged"):
        Advisor.load(copy)


def test_levels_are_checked_too(copy: Path) -> None:
    whole = arrays(copy, "levels.npz")
    for spoilt in ({"level": whole["level"] - 10**6}, {"users": whole["users"][::-1]}):
        change(copy, "levels.npz", **{**whole, **spoilt})
        with pytest.raises(InputError, match="damaged"):
            Advisor.load(copy)


def test_embeddings_are_checked_too(copy: Path) -> None:
    file = "expertise.npz"
    whole = arrays(copy, file)
    for spoilt in (
        {"levels": whole["levels"] - 10},
        {"source": np.full_like(whole["source"], np.nan)},
        {"targets": whole["targets"] + 10**6},
    ):
        change(copy, file, **{**whole, **spoilt})
        with pytest.raises(InputError):
            Advisor.load(copy).expertise  # noqa: B018


@given(st.data())
@settings(max_examples=80)
def test_flipped_bytes_never_crash(
    model: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Whatever byte changes, opening either works or is refused with a sentence."""
    copy = shutil.copytree(model, tmp_path_factory.mktemp("flipped") / "model")
    file = copy / data.draw(st.sampled_from(sorted(entry.name for entry in copy.iterdir())))
    content = bytearray(file.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    file.write_bytes(bytes(content))
    try:
        opened = Advisor.load(copy)
    except InputError:
        return
    finally:
        shutil.rmtree(copy.parent)
    assert opened.ask(Question("anything at all")).candidates > 0


def test_members_that_do_not_belong_are_refused(copy: Path) -> None:
    with zipfile.ZipFile(copy / "timeline.npz", "a") as archive:
        archive.writestr("extra.npy", b"x")
    with pytest.raises(InputError, match="damaged"):
        Advisor.load(copy)
