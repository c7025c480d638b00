"""A trained router as a folder: arrays in .npz, the rest in JSON; nothing that could run code.

::

    MODEL/
      router.json     what was learnt, and the words
      records.npz     the events of the site, as far as ranking needs them
      texts.json      titles (for reasons) and tags
      atp.npz         the embedding of the competition graph
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from atpgraph.cqa.routing.features import FeatureSpace
from atpgraph.cqa.routing.history import History, Records
from atpgraph.cqa.routing.router import Router
from atpgraph.cqa.routing.structural import Structure
from atpgraph.cqa.routing.text import Corpus
from atpgraph.cqa.site import Answers, Questions
from atpgraph.embedding.estimator import ATP
from atpgraph.errors import InputError

FORMAT = "atpgraph-router"
VERSION = 1
_ARRAYS = (
    "users",
    "asker",
    "owner",
    "accepted_ms",
    "accepted_answer",
    "vote_ms",
    "vote_answer",
    "vote_value",
    "tag_indptr",
    "tag_codes",
    "present",
)


def save_router(router: Router, history: History, folder: str | os.PathLike[str]) -> Path:
    """Write a fitted router and the history it ranks with; a model that is there is replaced."""
    target = Path(folder)
    if target.exists() and not (target / "router.json").is_file():
        raise InputError(f"{target} is there and is not a router; name another folder.")
    if not target.parent.is_dir():
        raise InputError(f"Cannot write {target}: the folder {target.parent} does not exist.")
    records = history.records
    made = Path(tempfile.mkdtemp(prefix=f".{target.name}-", dir=target.parent))
    try:
        counts = records.corpus.counts
        arrays: dict[str, Any] = {name: getattr(records, name) for name in _ARRAYS}
        for part, table in (("question", records.questions), ("answer", records.answers)):
            arrays |= {f"{part}_{name}": value for name, value in vars(table).items()}
        arrays |= {"data": counts.data, "indices": counts.indices, "indptr": counts.indptr}
        arrays |= {"shape": np.array(counts.shape), "now": np.array(history.now)}
        np.savez(made / "records.npz", **arrays)
        texts = {"titles": list(records.titles), "tags": records.tag_names}
        (made / "texts.json").write_text(json.dumps(texts), encoding="utf-8")
        structure = router.space_.structure
        if structure is not None and structure.atp is not None:
            structure.atp.save(made / "atp.npz")
        words = list(records.corpus.vocabulary)
        codes = [records.corpus.vocabulary[word] for word in words]
        ordered = [words[i] for i in np.argsort(codes).tolist()]
        described = {"format": FORMAT, "version": VERSION, **router.to_json(), "words": ordered}
        (made / "router.json").write_text(json.dumps(described), encoding="utf-8")
        made.chmod(0o755)
        if target.exists():
            shutil.rmtree(target)
        made.rename(target)
    except BaseException:
        shutil.rmtree(made, ignore_errors=True)
        raise
    return target


def is_router(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder holds a router."""
    return (Path(folder) / "router.json").is_file()


def load_router(folder: str | os.PathLike[str]) -> tuple[Router, History]:
    """Read a router that :func:`save_router` wrote, and its history."""
    source = Path(folder)
    try:
        described = json.loads((source / "router.json").read_text(encoding="utf-8"))
        texts = json.loads((source / "texts.json").read_text(encoding="utf-8"))
        with np.load(source / "records.npz", allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"Cannot read the router {source}: {error}.") from error
    if described.get("format") != FORMAT or described.get("version") != VERSION:
        raise InputError(f"{source} is not a router of this version of atpgraph; train it again.")
    counts = sparse.csc_matrix(
        (arrays["data"], arrays["indices"], arrays["indptr"]), shape=tuple(arrays["shape"])
    )
    vocabulary = {word: code for code, word in enumerate(described["words"])}

    def columns(part: str, kind: type[Any]) -> Any:
        return kind(**{name: arrays[f"{part}_{name}"] for name in kind.__dataclass_fields__})

    records = Records(
        **{name: arrays[name] for name in _ARRAYS},
        questions=columns("question", Questions),
        answers=columns("answer", Answers),
        corpus=Corpus(vocabulary, counts),
        tag_names=texts["tags"],
        titles=texts["titles"],
        bodies=[""] * len(texts["titles"]),
    )
    history = records.at(int(arrays["now"]))
    router = Router.from_json(described)
    atp = ATP.load(source / "atp.npz") if (source / "atp.npz").is_file() else None
    router.space_ = FeatureSpace(Structure(history, router.settings, router.random_state, atp))
    return router, history
