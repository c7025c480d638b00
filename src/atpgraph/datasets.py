"""Example graphs: public ones by name, and two that every Python installation has.

:func:`python_imports` reads the imports of the standard library, :func:`installed_packages` the
requirements of what is installed; neither needs a download.

The file of a graph by name is looked for in the folder that ``ATP_DATA`` names (in its subfolder
``graphs``, then in the folder itself) and in the cache; if it is in neither, it is downloaded from
SNAP to the cache. Whatever the source, a graph is accepted only if its node and edge counts are
those SNAP publishes; if a checksum of the edges is known, a download has to match that too.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import importlib.metadata
import os
import re
import sys
import sysconfig
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from atpgraph.errors import AtpError, InputError, MissingDependencyError
from atpgraph.graph.digraph import DiGraph
from atpgraph.graph.edgelist import read_edgelist
from atpgraph.graph.generators import gnm, noisy_hierarchy
from atpgraph.util.checks import Registry
from atpgraph.util.progress import stage

_SNAP = "https://snap.stanford.edu/data/"
_LICENSE = "no license stated; SNAP asks to cite the source"


@dataclass(frozen=True)
class Dataset:
    """A graph that can be loaded by name.

    Attributes
    ----------
    name : str
    description : str
    nodes, edges : int
        As published, self-loops included.
    file : str
        Name of the file; empty if the graph is generated.
    url : str
        Where it is downloaded from; empty if the graph is generated.
    license : str
    edges_sha256 : str
        SHA-256 of the sorted edges, one line of two ids each (see :func:`edge_checksum`); empty
        where nobody has computed it from SNAP's file, in which case only the counts are checked.
        It covers the edges, not the file, because archives differ in comments and compression.
    """

    name: str
    description: str
    nodes: int
    edges: int
    file: str = ""
    url: str = ""
    license: str = _LICENSE
    edges_sha256: str = ""

    @property
    def generated(self) -> bool:
        """Whether the graph is generated and needs no file."""
        return not self.file


def _snap(name: str, description: str, nodes: int, edges: int, checksum: str = "") -> Dataset:
    file = f"{name}.txt.gz"
    return Dataset(name, description, nodes, edges, file, _SNAP + file, edges_sha256=checksum)


_ALL = [
    _snap(
        "wiki-Vote",
        "votes of Wikipedia users on administrators",
        7_115,
        103_689,
        "92cfd4c6c845980c560255b063ebbab6d3f85fad738e6332b16e828a295c5860",
    ),
    _snap("cit-HepPh", "citations in high-energy physics, phenomenology", 34_546, 421_578),
    _snap("cit-HepTh", "citations in high-energy physics, theory", 27_770, 352_807),
    _snap(
        "p2p-Gnutella31",
        "connections of Gnutella hosts, 31 August 2002",
        62_586,
        147_892,
        "8cfd1cf35200f4b9fdcc9df93862918ed7fa8449aac30e5a4df83778ce258907",
    ),
    _snap("soc-Epinions1", "who trusts whom on Epinions", 75_879, 508_837),
    _snap("email-Eu-core", "e-mail inside a European research institution", 1_005, 25_571),
    Dataset(
        "GNM-30K",
        "random acyclic graph with 5,000 further edges that close cycles, generated",
        30_000,
        155_000,
        license="none needed: generated",
    ),
    Dataset(
        "GNM-30K-uniform",
        "uniform random graph of the same size, generated",
        30_000,
        155_000,
        license="none needed: generated",
    ),
]
DATASETS = Registry("dataset", {dataset.name: dataset for dataset in _ALL})
# The paper says of its random graph only that it is directed and has cycles. The graph its authors
# published with their cycle-breaking study is a random acyclic graph plus edges that close cycles.
_GENERATED: dict[str, Callable[[], DiGraph]] = {
    "GNM-30K": lambda: noisy_hierarchy(30_000, 150_000, 5_000, random_state=30_155).graph,
    "GNM-30K-uniform": lambda: gnm(30_000, 155_000, random_state=30_155),
}


def find(name: str) -> Dataset:
    """Return the dataset called `name`; case is ignored.

    Examples
    --------
    >>> find("WIKI-vote").nodes
    7115
    """
    by_lower = {known.lower(): known for known in DATASETS}
    return DATASETS[by_lower.get(name.lower(), name)]


def available() -> list[str]:
    """Return the names of the datasets that can be loaded without a download."""
    return [d.name for d in DATASETS.values() if d.generated or _local(d) is not None]


def path(name: str) -> Path:
    """Return the file of a dataset; the InputError for a missing one says how to get it."""
    dataset = _with_file(name)
    file = _local(dataset)
    if file is None:
        raise InputError(
            f"{dataset.name} is not on this machine; run 'atp data fetch {dataset.name}', or "
            f"set ATP_DATA to a folder that holds {dataset.file}."
        )
    return file


def fetch(name: str) -> Path:
    """Return the file of a dataset, downloaded to the cache if it is not on this machine."""
    dataset = _with_file(name)
    return _local(dataset) or _download(dataset)


def load(name: str) -> DiGraph:
    """Return a dataset as a graph, downloaded first if necessary.

    Examples
    --------
    >>> load("GNM-30K")
    DiGraph(nodes=30000, edges=155000, self_loops=0)
    """
    dataset = find(name)
    if dataset.generated:
        return _GENERATED[dataset.name]()
    file = fetch(dataset.name)
    graph = read_edgelist(file)
    _check_counts(dataset, graph, file)
    return graph


def edge_checksum(graph: DiGraph) -> str:
    """Return the SHA-256 of the sorted edges of a graph with integer labels, ``u<TAB>v`` per line.

    Examples
    --------
    >>> edge_checksum(DiGraph.from_edges([(2, 1), (1, 3)]))[:16]
    '7d14768eaacf3fa2'
    """
    u, v = graph.edge_labels()
    order = np.lexsort((v, u))
    lines = "".join(
        f"{a}\t{b}\n" for a, b in zip(u[order].tolist(), v[order].tolist(), strict=True)
    )
    return hashlib.sha256(lines.encode()).hexdigest()


@functools.cache
def python_imports() -> DiGraph:
    """Return the import graph of the installed Python's standard library.

    An edge leads from the importing to the imported module. Imports inside functions count, so
    there are cycles: the library uses such imports to avoid circular imports at load time. Tests,
    IDLE and extension modules are left out. The graph depends only on the version of Python.

    Examples
    --------
    >>> graph = python_imports()
    >>> ("json", "json.decoder") in set(graph.edges())
    True
    """
    root = Path(sysconfig.get_path("stdlib"))
    files: dict[str, Path] = {}
    for top in sorted(sys.stdlib_module_names - _NOT_LIBRARY):
        for file in [root / f"{top}.py", *sorted((root / top).rglob("*.py"))]:
            parts = file.relative_to(root).with_suffix("").parts
            if file.is_file() and not _NOT_LIBRARY & set(parts):
                files[".".join(parts).removesuffix(".__init__")] = file
    edges: dict[tuple[str, str], None] = {}  # in order, without duplicates
    for module, file in files.items():
        for name in _imported(module, file):
            while name and name not in files:  # a class or function: the module it is in
                name = name.rpartition(".")[0]
            if name and name != module:
                edges[module, name] = None
    return DiGraph.from_edges(list(edges))


_NOT_LIBRARY = {"test", "tests", "idlelib", "lib2to3", "turtledemo", "site-packages", "__main__"}


def _imported(module: str, file: Path) -> Iterable[str]:
    """Yield the full names that a module imports, also inside functions."""
    package = module if file.stem == "__init__" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: 1 - node.level or None] if node.level else []
            start = ".".join([*base, node.module] if node.module else base)
            yield from (f"{start}.{alias.name}" for alias in node.names)


def installed_packages() -> DiGraph:
    """Return the graph of requirements among the installed distributions, without optional ones.

    Examples
    --------
    >>> ("atpgraph", "numpy") in set(installed_packages().edges())
    True
    """

    def normal(name: str) -> str:
        return re.sub(r"[-_.]+", "-", name).lower()

    required: dict[str, list[str]] = {}
    for each in importlib.metadata.distributions():
        # What an interrupted installation left has no name, or with some finders no metadata.
        with contextlib.suppress(FileNotFoundError):
            if "Name" in each.metadata:
                required[normal(each.metadata["Name"])] = each.requires or []
    pairs = {
        (name, normal(re.split(r"[^\w.-]", line, maxsplit=1)[0]))
        for name, lines in required.items()
        for line in lines
        if not re.search(r"\bextra\s*==", line)
    }
    return DiGraph.from_edges(sorted(pair for pair in pairs if pair[1] in required))


def _with_file(name: str) -> Dataset:
    dataset = find(name)
    if dataset.generated:
        raise InputError(f"{dataset.name} is generated and has no file; load it by its name.")
    return dataset


def _folders() -> Iterable[Path]:
    named = os.environ.get("ATP_DATA")
    if named:
        yield Path(named) / "graphs"
        yield Path(named)
    yield _cache()


def _local(dataset: Dataset) -> Path | None:
    candidates = (folder / dataset.file for folder in _folders())
    return next((file for file in candidates if file.is_file()), None)


def _cache() -> Path:
    named = os.environ.get("ATP_CACHE")
    if named:
        return Path(named)
    try:
        return Path(_pooch().os_cache("atpgraph"))
    except MissingDependencyError:
        return Path.home() / ".cache" / "atpgraph"


def _pooch() -> Any:
    try:
        import pooch
    except ImportError:
        raise MissingDependencyError("pooch", "datasets", "Downloading a dataset") from None
    return pooch


def _download(dataset: Dataset) -> Path:
    pooch = _pooch()
    pooch.get_logger().setLevel("WARNING")
    waiting = f"{dataset.file}.unchecked"
    try:
        with stage(f"downloading {dataset.url}"):
            # No checksum of the archive is published; the edges inside are checked below.
            file = Path(pooch.retrieve(dataset.url, known_hash=None, fname=waiting, path=_cache()))
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise AtpError(
            f"Cannot download {dataset.url} ({reason}); get the file another way and set ATP_DATA "
            "to its folder."
        ) from error
    try:
        graph = read_edgelist(file)
        _check_counts(dataset, graph, file)
        if dataset.edges_sha256 and edge_checksum(graph) != dataset.edges_sha256:
            raise InputError(f"The edges in {dataset.url} are not those of {dataset.name}.")
    except InputError:
        file.unlink()
        raise
    return file.replace(_cache() / dataset.file)


def _check_counts(dataset: Dataset, graph: DiGraph, file: Path) -> None:
    if (graph.n_nodes, graph.n_edges) != (dataset.nodes, dataset.edges):
        raise InputError(
            f"{file} has {graph.n_nodes:,} nodes and {graph.n_edges:,} edges; {dataset.name} has "
            f"{dataset.nodes:,} and {dataset.edges:,}."
        )
