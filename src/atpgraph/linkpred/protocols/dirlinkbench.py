"""DirLinkBench: its split files, and what its authors published, marked as theirs."""

from __future__ import annotations

import os
from math import isnan
from pathlib import Path

import numpy as np

from atpgraph.errors import InputError
from atpgraph.graph.digraph import DiGraph
from atpgraph.linkpred.protocols.judging import PairTest
from atpgraph.linkpred.protocols.negatives import Pairs
from atpgraph.linkpred.protocols.splits import Split
from atpgraph.util.archive import load_array

GRAPHS = ("cora_ml", "citeseer", "photo", "computers", "wikics", "slashdot", "epinions")
# Hits@100 in per cent, table 8 of arXiv 2502.05724v2; NaN: out of time or memory. The first three
# rows use no node features, the others do where a graph has them.
_NONE = float("nan")
_TABLE = {
    "STRAP": (79.09, 69.32, 69.16, 51.87, 76.27, 31.43, 58.99),
    "ODIN": (54.85, 63.95, 14.13, 12.98, 9.83, 34.17, 36.91),
    "ELTRA": (87.45, 84.97, 20.63, 14.74, 9.88, 33.44, 41.63),
    "MLP": (60.61, 70.27, 20.91, 17.57, 12.99, 32.97, 44.59),
    "GCN": (70.15, 80.36, 58.77, 43.77, 38.37, 33.16, 46.10),
    "GAT": (79.72, 85.88, 58.06, 40.74, 40.47, 30.16, 43.65),
    "APPNP": (86.02, 83.57, 47.51, 32.24, 20.23, 33.76, 41.99),
    "GPRGNN": (86.03, 88.70, 47.60, 38.39, 20.87, 32.61, 41.14),
    "DGCN": (63.32, 68.97, 51.61, 39.92, 25.91, _NONE, _NONE),
    "DiGCN": (63.21, 70.95, 40.17, 27.51, 25.31, _NONE, _NONE),
    "DiGCNIB": (80.57, 85.32, 48.26, 32.44, 28.28, _NONE, _NONE),
    "DirGNN": (76.13, 76.83, 49.15, 35.65, 50.48, 41.74, 50.10),
    "MagNet": (56.54, 65.32, 13.89, 12.85, 10.81, 31.98, 28.01),
    "DUPLEX": (69.00, 73.39, 17.94, 17.90, 8.52, 18.42, 16.50),
    "DHYPR": (86.81, 92.32, 20.93, _NONE, _NONE, _NONE, _NONE),
    "DiGAE": (82.06, 83.64, 55.05, 41.55, 29.21, 41.95, 55.14),
    "SDGAE": (90.37, 93.69, 68.84, 53.79, 54.67, 42.42, 55.91),
}
PUBLISHED = {
    graph: {name: row[at] for name, row in _TABLE.items() if not isnan(row[at])}
    for at, graph in enumerate(GRAPHS)
}

_FILES = ("observed_graph", "pos_test_edges", "neg_test_edges")


def is_splits(path: str | os.PathLike[str]) -> bool:
    """Return whether a folder holds splits, one folder each."""
    folder = Path(path)
    return folder.is_dir() and any(folder.glob("*/observed_graph.npy"))


def read_splits(path: str | os.PathLike[str]) -> list[Split]:
    """Return the fixed splits in a folder, in the order of their numbers.

    Each has ``observed_graph.npy`` (what a method is handed), ``pos_test_edges.npy`` and
    ``neg_test_edges.npy``: integers of shape (m, 2) or (2, m). Their validation edges are not read:
    a method of ours takes its own out of the observed graph.
    """
    folders = [file.parent for file in Path(path).glob("*/observed_graph.npy")]
    if not folders:
        raise InputError(
            f"{path} holds no split; a split is a folder with {', '.join(_FILES)} as .npy files."
        )
    return [_read(each) for each in sorted(folders, key=lambda each: (len(each.name), each.name))]


def _read(folder: Path) -> Split:
    observed, good, bad = (_edges(folder / f"{name}.npy") for name in _FILES)
    ends = [side for part in (observed, good, bad) for side in (part.sources, part.targets)]
    n = 1 + max(int(side.max(initial=-1)) for side in ends)
    train = DiGraph.from_codes(observed.sources, observed.targets, n)
    if not len(good) or not len(bad):
        raise InputError(f"{folder} has no test edges.")
    if (train.find_edges(good.sources, good.targets) >= 0).any():
        raise InputError(f"{folder}: a test edge is in the observed graph too.")
    return Split(train, good, {"dirlinkbench": PairTest(good, bad, "hits@100")}, {}, len(good))


def _edges(file: Path) -> Pairs:
    try:
        raw = load_array(file)
    except (OSError, ValueError) as error:
        raise InputError(f"Cannot read {file}: {error}.") from None
    if raw.ndim != 2 or 2 not in raw.shape or raw.dtype.kind not in "iu":
        raise InputError(f"{file} holds {raw.dtype} of shape {raw.shape}, not pairs of nodes.")
    if raw.size and raw.min() < 0:
        raise InputError(f"{file} holds the node {raw.min()}; nodes are numbered from 0.")
    sources, targets = np.array(raw.T if raw.shape[1] == 2 else raw, dtype=np.int64)
    return Pairs(sources, targets)
