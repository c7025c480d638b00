"""A trained model as a folder: arrays in .npz, the rest in JSON; nothing that could run code.

::

    MODEL/
      model.json       version, site, weights of the router, newcomers
      timeline.npz     the events of the site, as far as ranking and reasons need them
      levels.npz       levels of people, for reasons
      expertise.npz    the embedding that expertise and difficulty come from
      vectors.npz      what the questions are about, where a text model says so

Whatever is read is checked before it is used: compiled code does not check indices.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

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
from atpgraph_qa.advisor.hierarchy import Hierarchy
from atpgraph_qa.advisor.model_text import FILES as TEXT_FILES
from atpgraph_qa.advisor.model_text import read_text, write_text
from atpgraph_qa.advisor.newcomers import newcomer_from_json
from atpgraph_qa.data.site import QuestionTags, Site
from atpgraph_qa.ranking.router import Router
from atpgraph_qa.timeline.corpus import Corpus
from atpgraph_qa.timeline.growth import TextLines
from atpgraph_qa.timeline.history import History
from atpgraph_qa.timeline.newcomer import Newcomer
from atpgraph_qa.timeline.records import Records
from atpgraph_qa.timeline.tables import (
    AcceptanceTable,
    AnswerTable,
    QuestionTable,
    Table,
    TextTable,
    VoteTable,
)

if TYPE_CHECKING:
    from atpgraph.embedding.estimator import ATP
    from atpgraph_qa.competition import Posts
    from atpgraph_qa.expertise import Expertise

FORMAT, TIMELINE, LEVELS = "atpgraph-cqa-model", "atpgraph-timeline", "atpgraph-levels"
VERSION = 1
MANIFEST, EXPERTISE = "model.json", "expertise.npz"
_FILES = (MANIFEST, "timeline.npz", "levels.npz", EXPERTISE, *TEXT_FILES)
_HINT = "a trained model; make one with 'atp qa train SITE -o MODEL'"
_TABLES: dict[str, type[Table]] = {
    "questions": QuestionTable,
    "answers": AnswerTable,
    "acceptances": AcceptanceTable,
    "votes": VoteTable,
}
# u users, q questions, a answers, c acceptances, v votes, t tags of questions, w words, z counts.
_FIELDS = {
    "users": Field("i", ("u",), low=0, ascending=True, unique=True),
    "questions_id": Field("i", ("q",), unique=True),
    "questions_asked_ms": Field("i", ("q",), ascending=True),
    "questions_asker": Field("i", ("q",), low=-1, high="u"),
    "questions_present": Field("b", ("q",)),
    "answers_given_ms": Field("i", ("a",), ascending=True),
    "answers_question": Field("i", ("a",), low=0, high="q"),
    "answers_owner": Field("i", ("a",), low=-1, high="u"),
    "answers_id": Field("i", ("a",), low=-1),
    "acceptances_known_ms": Field("i", ("c",), ascending=True),
    "acceptances_answer": Field("i", ("c",), low=0, high="a", unique=True),
    "votes_known_ms": Field("i", ("v",), ascending=True),
    "votes_answer": Field("i", ("v",), low=0, high="a"),
    "votes_value": Field("i", ("v",), low=-1, high=2),
    "tags_indptr": pointers("q", "t"),
    "tags_tags": Field("i", ("t",), low=0),
    "words_indptr": pointers("w", "z"),
    "words_indices": Field("i", ("z",), low=0, high="q"),
    "words_data": Field("f", ("z",), low=0),
    "titles": text(),
    "tags": text(),
    "words": text(),
}


_LEVEL_FIELDS = {
    "users": Field("i", ("u",), low=0, ascending=True, unique=True),
    "level": Field("i", ("u",), low=1),
}


def check_writable_model(path: str | os.PathLike[str]) -> None:
    """Refuse, before long work, a place where a model could not be written in the end."""
    check_folder(path, known=_FILES)


def write_model(
    path: str | os.PathLike[str],
    history: History,
    router: Router,
    expertise: Expertise | bytes,
    hierarchy: Hierarchy,
    newcomers: Iterable[Newcomer] = (),
) -> Path:
    """Write a model folder, whole or not at all; a model that is there is replaced at the end."""
    records = history.records.settled()
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "written_by": f"atpgraph {__version__}",
        "site": fingerprint(History(records).posts()),
        "router": router.to_json(),
        "newcomers": [asdict(newcomer) for newcomer in newcomers],
    }
    described = {"format": TIMELINE, "version": VERSION, "now": history.now}
    with atomic_folder(path, known=_FILES) as folder:
        write_archive(folder / "timeline.npz", described, _arrays(records))
        found = {"users": hierarchy.users, "level": hierarchy.level}
        top = {"format": LEVELS, "version": VERSION, "top": hierarchy.top}
        write_archive(folder / "levels.npz", top, found)
        if isinstance(expertise, bytes):
            (folder / EXPERTISE).write_bytes(expertise)
        else:
            expertise.model.save(folder / EXPERTISE)
        manifest["text"] = write_text(folder, records.meaning, len(records.questions))
        written = json.dumps(manifest, allow_nan=False)
        (folder / MANIFEST).write_text(written + "\n", encoding="utf-8")
    return Path(path)


@dataclass(frozen=True, eq=False)
class ModelFolder:
    """A model folder whose parts are read when they are asked for.

    Attributes
    ----------
    path : Path
    manifest : dict
        The content of ``model.json``.
    """

    path: Path
    manifest: dict[str, Any]

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open a model that 'atp qa train' wrote."""
        folder = Path(path)
        if not folder.is_dir():
            kind = "is a file, and not" if folder.exists() else "does not exist, and so is not"
            raise InputError(f"{folder} {kind} {_HINT}.")
        if not (folder / MANIFEST).is_file():
            raise InputError(f"{folder} is not {_HINT}.")
        manifest = read_json(folder / MANIFEST, _HINT)
        if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
            raise InputError(f"{folder} is not {_HINT}.")
        if manifest.get("version") != VERSION:
            raise InputError(
                f"{folder} is a model of version {manifest.get('version')!r}, and this atpgraph "
                f"({__version__}) reads version {VERSION}: train it again."
            )
        return cls(folder, manifest)

    def history(self) -> History:
        """The site as it was when the model was trained."""
        plain = self._timeline()
        n = len(plain.records.questions)
        meaning = read_text(self.path, self.manifest.get("text"), n, _HINT)
        return replace(plain, records=replace(plain.records, meaning=meaning))

    def _timeline(self) -> History:
        """The same without its vectors, which need the text model."""

        def restore(description: dict[str, Any], arrays: dict[str, AnyArray]) -> History:
            return History(_records(arrays), int(description["now"]), shared=True)

        file = self.path / "timeline.npz"
        return read_archive(file, TIMELINE, VERSION, _HINT, _FIELDS, restore)

    def posts(self) -> Posts:
        """All posts of the site, without their text."""
        return History(self._timeline().records).posts()

    def router(self) -> Router:
        """The router."""
        with _damage(self.path / MANIFEST):
            router = Router.from_json(self.manifest["router"])
            if router.pool != "all":
                raise ValueError("its router ranks only people who have answered")
        return router

    def hierarchy(self) -> Hierarchy:
        """Levels of people."""

        def restore(description: dict[str, Any], arrays: dict[str, AnyArray]) -> Hierarchy:
            users, level = (arrays[n].astype(np.int64, copy=False) for n in ("users", "level"))
            return Hierarchy(users, level, int(description["top"]))

        file = self.path / "levels.npz"
        return read_archive(file, LEVELS, VERSION, _HINT, _LEVEL_FIELDS, restore)

    def expertise(self) -> Expertise:
        """Read the embedding that expertise and difficulty come from."""
        from atpgraph_qa.expertise import Expertise

        return Expertise.from_model(_embedding(self.path / EXPERTISE))

    def stored_expertise(self) -> bytes:
        """Return the file of the embedding as it is; ranking does not need to read it."""
        try:
            return (self.path / EXPERTISE).read_bytes()
        except OSError as error:
            raise InputError(f"Cannot read {self.path / EXPERTISE}: {error.strerror}.") from error

    def expertise_of(self, site: Site) -> Expertise:
        """The same for the site that the model was trained on; any other is refused."""
        if fingerprint(site) != self.manifest.get("site"):
            raise InputError(
                f"{self.path} was trained on another site than {site.path}, or on another dump of "
                "it: train it again."
            )
        return self.expertise()

    def newcomers(self) -> tuple[Newcomer, ...]:
        """Those who were welcomed before the model was saved."""
        file = self.path / MANIFEST
        with _damage(file):
            entries = list(self.manifest["newcomers"])
        return tuple(newcomer_from_json(entry, str(file)) for entry in entries)


def fingerprint(posts: Site | Posts) -> dict[str, Any]:
    """What tells one site, or one dump of it, from another."""
    digest = hashlib.sha256()
    for column in (posts.questions.id, posts.questions.created_ms):
        digest.update(np.ascontiguousarray(column, dtype="<i8").tobytes())
    return {
        "questions": len(posts.questions),
        "answers": len(posts.answers),
        "accepted": int(np.count_nonzero(posts.questions.accepted >= 0)),
        "digest": digest.hexdigest(),
    }


@contextlib.contextmanager
def _damage(file: Path) -> Iterator[None]:
    """Turn what damaged JSON does into one sentence."""
    try:
        yield
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"{file} is damaged ({why}): train the model again.") from error


def read_expertise(stored: bytes) -> Expertise:
    """Return the expertise in the bytes of a file."""
    from atpgraph_qa.expertise import Expertise

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / EXPERTISE
        file.write_bytes(stored)
        return Expertise.from_model(_embedding(file))


def _embedding(file: Path) -> ATP:
    from atpgraph.embedding.estimator import ATP

    atp = ATP.load(file)
    finite = np.isfinite(atp.source_).all() and np.isfinite(atp.target_).all()
    if not finite or np.any(atp.levels_ < 0):
        raise InputError(f"{file} is damaged (numbers out of range): train the model again.")
    return atp


def _arrays(records: Records) -> dict[str, AnyArray]:
    """The records as arrays, texts as JSON."""
    arrays: dict[str, AnyArray] = {"users": records.users}
    for name in _TABLES:
        table = getattr(records, name)
        arrays |= {f"{name}_{f.name}": getattr(table, f.name) for f in fields(table)}
    arrays |= {"tags_indptr": records.tags.indptr, "tags_tags": records.tags.tags}
    counts, vocabulary = records.corpus.counts, records.corpus.vocabulary
    arrays |= {f"words_{part}": getattr(counts, part) for part in ("indptr", "indices", "data")}
    texts = {
        "titles": list(records.texts.titles),
        "tags": records.tags.names,
        "words": sorted(vocabulary, key=vocabulary.__getitem__),
    }
    return arrays | {name: as_bytes(json.dumps(lines)) for name, lines in texts.items()}


def _records(arrays: dict[str, AnyArray]) -> Records:
    """Back from arrays; a ValueError if they do not fit together."""

    def column(name: str) -> AnyArray:
        kind = np.bool_ if _FIELDS[name].kind == "b" else np.int64
        return arrays[name].astype(kind, copy=False)

    tables: dict[str, Any] = {
        name: kind(*(column(f"{name}_{f.name}") for f in fields(kind)))
        for name, kind in _TABLES.items()
    }
    n = len(tables["questions"])
    titles, tags = _lines(arrays["titles"]), _lines(arrays["tags"])
    if len(titles) != n or np.any(arrays["tags_tags"] >= len(tags)):
        raise ValueError("its titles or tags do not fit its questions")
    check_pointers(arrays["tags_indptr"], len(arrays["tags_tags"]))
    return Records(
        users=column("users"),
        **tables,
        tags=QuestionTags(tags, column("tags_indptr"), column("tags_tags")),
        texts=TextTable(TextLines.of(titles), TextLines.of([""] * n)),
        corpus=_corpus(arrays, n),
    )


def _corpus(arrays: dict[str, AnyArray], n: int) -> Corpus:
    words = _lines(arrays["words"])
    unique_names(words)
    indptr, indices = arrays["words_indptr"], arrays["words_indices"]
    check_pointers(indptr, len(indices))
    if len(words) != len(indptr) - 1:
        raise ValueError("its words do not fit their counts")
    if len(words):
        # What Corpus counts on: no empty columns, rows ascend in each, columns come by first use.
        rises = np.diff(indices) > 0
        rises[indptr[1:-1] - 1] = True
        first = indices[indptr[:-1]] if np.all(np.diff(indptr) > 0) else indptr[:0]
        if not rises.all() or len(first) < len(words) or np.any(np.diff(first) < 0):
            raise ValueError("its words are in disorder")
    counts = sparse.csc_matrix(
        (arrays["words_data"].astype(np.float64, copy=False), indices, indptr),
        shape=(n, len(words)),
    )
    return Corpus({word: code for code, word in enumerate(words)}, counts)


def _lines(raw: AnyArray) -> list[str]:
    lines = parse_json(as_text(raw))
    if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
        raise ValueError("its texts are not lines")
    return lines
