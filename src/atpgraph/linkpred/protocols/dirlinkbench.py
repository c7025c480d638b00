"""DirLinkBench: its split files, and what its authors published, marked as theirs."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.protocols.judging import DirLinkBench, PairTest
from atpgraph.linkpred.protocols.negatives import Pairs
from atpgraph.linkpred.protocols.splits import Split
from atpgraph.util.archive import load_array
from atpgraph.util.arrays import Int64Array

# Hits@100 in per cent, arXiv 2502.05724; SDGAE and DHYPR use node features, the others do not.
PUBLISHED = {"cora_ml": {"SDGAE": 90.4, "ELTRA": 87.5, "DHYPR": 86.8, "STRAP": 79.1}}

_FILES = ("observed_graph", "pos_test_edges", "neg_test_edges")


def is_splits(path: str | os.PathLike[str]) -> bool:
    """Whether a folder holds splits, one folder each."""
    folder = Path(path)
    return folder.is_dir() and any(folder.glob("*/observed_graph.npy"))


def read_splits(path: str | os.PathLike[str]) -> list[Split]:
    """The fixed splits in a folder, in the order of their numbers.

    Each has ``observed_graph.npy`` (what a method is handed), ``pos_test_edges.npy`` and
    ``neg_test_edges.npy``: integers of shape (m, 2) or (2, m). Their validation edges are not read:
    a method of ours takes its own out of the observed graph.
    """
    folders = sorted(
        (file.parent for file in Path(path).glob("*/observed_graph.npy")),
        key=lambda folder: (len(folder.name), folder.name),
    )
    if not folders:
        raise InputError(
            f"{path} holds no split; a split is a folder with {', '.join(_FILES)} as .npy files."
        )
    return [_read(folder) for folder in folders]


def _read(folder: Path) -> Split:
    observed, good, bad = (_edges(folder / f"{name}.npy") for name in _FILES)
    n = 1 + max(int(part.max(initial=-1)) for part in (observed, good, bad))
    train = DiGraph.from_codes(observed[:, 0], observed[:, 1], n)
    positives = Pairs(good[:, 0], good[:, 1])
    if not len(good) or not len(bad):
        raise InputError(f"{folder} has no test edges.")
    if (train.find_edges(good[:, 0], good[:, 1]) >= 0).any():
        raise InputError(f"{folder}: a test edge is in the observed graph too.")
    test = PairTest(positives, Pairs(bad[:, 0], bad[:, 1]), DirLinkBench.headline)
    return Split(train, positives, {DirLinkBench.name: test}, {}, len(good))


def _edges(file: Path) -> Int64Array:
    try:
        raw = load_array(file)
    except (OSError, ValueError) as error:
        raise InputError(f"Cannot read {file}: {error}.") from None
    if raw.ndim != 2 or 2 not in raw.shape or raw.dtype.kind not in "iu":
        raise InputError(f"{file} holds {raw.dtype} of shape {raw.shape}, not pairs of nodes.")
    pairs = raw if raw.shape[1] == 2 else raw.T
    if pairs.size and pairs.min() < 0:
        raise InputError(f"{file} holds the node {pairs.min()}; nodes are numbered from 0.")
    return np.ascontiguousarray(pairs, dtype=np.int64)
