"""Every kernel on small input, so that compiled code can be compared with plain Python.

    NUMBA_DISABLE_JIT=1 python -m tests.plain_kernels RESULTS.npz

As plain Python, an index outside an array is an error, which compiled code would not notice, and
coverage sees the lines.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numba
import numpy as np

from atpgraph import (
    ATP,
    DiGraph,
    InputError,
    Reachability,
    break_cycles,
    citation_dag,
    gnm,
    levels,
    noisy_hierarchy,
    read_edgelist,
)
from atpgraph.closure import closure_forest, estimate_closure
from atpgraph.cycles import METHODS, agony
from atpgraph.graph.generators import plant_cycles, random_dag
from atpgraph.graph.scc import strongly_connected_components
from atpgraph.linkpred.baselines import app, line, nrp
from atpgraph.linkpred.protocols.negatives import one_way_pairs

TEXTS = {
    "integers.txt": "# two columns\n1 2\n2\t3\n-5 1\n3 1\n",
    "names.csv": 'source,target,weight\n"a, b",c,1.5\nc,"d ""e""",2e-1\nc,c,-3\n',
    "large.tsv": "9223372036854775807\t1\n007\t1\n",
    # Weights of few digits: as plain Python, bytes of digits would wrap around at 256.
    "wide.txt": "".join(f"{i} {i * 7 % 90} {i % 20}\n" for i in range(90)),
    "words.txt": "".join(f"w{i} w{i * i % 61}\n" for i in range(4500)),
    "quoted.csv": 'source,target\r\n"two\r\nlines" , b\r\n # c , d\r\n',
}
BROKEN = {
    "open.csv": 'source,target\n"a,b\n',
    "after.csv": 'source,target\n"a" x,b\n',
    "short.txt": "1 2\n3\n",
    "empty.csv": "source,target\na,\n",
    "infinite.csv": "source,target,weight\na,b,-inf\n",
    "number.csv": "source,target,weight\na,b,1e\n",
}


def compute() -> dict[str, np.ndarray]:
    """Results by name; integers must be equal, floats nearly so."""
    found: dict[str, np.ndarray] = {}
    for name, graph in _graphs().items():
        found[f"{name} edges"] = np.stack([graph.sources, graph.targets])
        found[f"{name} components"] = strongly_connected_components(graph)
        pairs = one_way_pairs(graph, 20, np.random.default_rng(0))
        found[f"{name} one way"] = np.stack([pairs.sources, pairs.targets])
        asked = Reachability(graph, index=False)
        labels = graph.labels[:40].tolist()
        found[f"{name} reached"] = np.array([asked.reaches(u, labels) for u in labels[:5]])
        found[f"{name} way"] = np.array([len(asked.path(labels[0], v) or ()) for v in labels])
        found[f"{name} numbers"] = np.stack([asked.n_descendants(), asked.n_ancestors()])
        ranks = agony(graph)
        found[f"{name} agony"] = np.array([ranks.value])
        for method in METHODS:
            found[f"{name} {method}"] = break_cycles(graph, method).removed
    for name, model in _models():
        found[f"{name} levels"] = model.levels_
        found[f"{name} vectors"] = np.stack([model.source_, model.target_])
        found[f"{name} objective"] = model.objective_
    dag = random_dag(90, 300, random_state=3)
    forest = closure_forest(dag)
    found["reaches"] = np.array([forest.reaches(u, np.arange(90)) for u in (0, 17, 89)])
    written = forest.to_sparse(levels(dag))
    found["written out"], found["weights"] = written.indices, written.data
    large = random_dag(2500, 2600, random_state=3)
    found["estimate"] = np.array([estimate_closure(large).pairs])
    graph = noisy_hierarchy(30, 90, 10, random_state=1).graph
    rivals = {
        "APP": app(graph, 4, walks=4),
        "LINE": line(graph, 4, samples_per_edge=4),
        "NRP": nrp(graph, 4, epochs=2),
    }
    for name, (source, target) in rivals.items():
        found[f"{name} scores"] = source[:5] @ target.T
    with tempfile.TemporaryDirectory() as folder:
        for name, text in TEXTS.items():
            file = Path(folder) / name
            file.write_text(text)
            read = read_edgelist(file)
            found[f"{name} labels"] = read.labels.astype(str)
            found[f"{name} edges"] = np.stack([read.sources, read.targets])
            if read.weights is not None:
                found[f"{name} weights"] = read.weights
        for name, text in BROKEN.items():
            file = Path(folder) / name
            file.write_text(text)
            try:
                read_edgelist(file)
            except InputError as error:
                found[f"{name} refused"] = np.array([str(error).partition(name)[2]])
    return found


def _graphs() -> dict[str, DiGraph]:
    cyclic = gnm(25, 90, random_state=2)
    loops = np.arange(3)
    both = np.concatenate
    return {
        "hierarchy": noisy_hierarchy(40, 120, 15, random_state=0).graph,
        "loops": DiGraph.from_codes(
            both([cyclic.sources, loops]), both([cyclic.targets, loops]), cyclic.n_nodes
        ),
        "citation": plant_cycles(citation_dag(60, 120, random_state=1), 6, 4, 1).graph,
    }


def _models() -> Iterator[tuple[str, ATP]]:
    graph = noisy_hierarchy(60, 200, 20, random_state=5).graph
    for k, weight, kernel in ((3, 0.0, "log"), (20, 0.1, "harmonic"), (70, "auto", "constant")):
        model = ATP(
            k, purpose="paper", zero_weight=weight, kernel=kernel, max_iter=2, n_jobs=1
        ).fit(graph)
        yield f"k={k}", model
    chain = ATP(2, purpose="paper", max_iter=1).fit([(i, i + 1) for i in range(70)])
    chain.source_, chain.target_ = (np.stack(pair) for pair in zip(*_folded(chain), strict=True))
    yield "folded", chain


def _folded(model: ATP) -> list[tuple[np.ndarray, np.ndarray]]:
    return [model.fold_in([3, 9], [1]), model.fold_in([], [5]), model.fold_in([60], [])]


if __name__ == "__main__":
    assert numba.config.DISABLE_JIT, "set NUMBA_DISABLE_JIT=1"
    # Integers wrap around in compiled code without a warning: hashes and random states.
    with np.errstate(over="ignore"):
        np.savez(os.fspath(sys.argv[1]), **compute())
