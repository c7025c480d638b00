"""Are the vectors good features for node classification? Generated citation graphs with topics.

Run: python benchmarks/features.py [--seeds 5] [--output benchmarks/results/features.md]

Papers have one of seven topics and cite about four earlier papers, of their own topic with the
given probability and otherwise of any. A logistic regression learns the topic from 20 % of the
papers; the rows differ in the features. Undirected proximity: singular vectors of the symmetric
adjacency matrix, divided by the square roots of the degrees. Generated graphs, not real ones.
"""

from __future__ import annotations

import numpy as np
from _common import Report, arguments, markdown
from scipy import sparse
from scipy.sparse.linalg import svds
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from atpgraph import ATP, DiGraph

NODES, TOPICS, CITED, LABELED = 2800, 7, 4, 0.2
SAME = (0.5, 0.8)


def papers(same: float, seed: int) -> tuple[DiGraph, np.ndarray]:
    """A citation graph and the topic of every paper."""
    rng = np.random.default_rng(seed)
    topic = rng.integers(0, TOPICS, NODES)
    sources, targets = [], []
    earlier: list[list[int]] = [[] for _ in range(TOPICS)]
    for paper in range(NODES):
        own = earlier[topic[paper]]
        for _ in range(CITED if paper else 0):
            near = bool(own) and rng.random() < same
            sources.append(paper)
            targets.append(own[rng.integers(len(own))] if near else int(rng.integers(paper)))
        own.append(paper)
    return DiGraph.from_codes(sources, targets, NODES), topic


def singular_vectors(matrix: sparse.csr_array, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Left and right singular vectors, scaled by the roots of the singular values."""
    left, values, right = svds(matrix.astype(np.float64), k, random_state=0)
    return left * np.sqrt(values), right.T * np.sqrt(values)


def rows(graph: DiGraph) -> dict[str, np.ndarray]:
    """The features of each row."""
    model = ATP(random_state=0).fit(graph)
    vectors = model.transform(graph).astype(np.float32)
    matrix = sparse.csr_array(graph.to_scipy())
    both = sparse.csr_array(((matrix + matrix.T) > 0).astype(np.float64))
    scale = sparse.diags_array(1 / np.sqrt(np.maximum(both.sum(axis=1), 1)))
    proximity = singular_vectors(sparse.csr_array(scale @ both @ scale), 64)[0]
    return {
        "levels alone": model.levels_[:, None].astype(np.float64),
        "**ATP**, `transform`": vectors,
        "SVD of the adjacency matrix, 64 + 64": np.hstack(singular_vectors(matrix, 64)),
        "undirected proximity, 64": proximity,
        "ATP and undirected proximity": np.hstack([vectors, proximity]),
    }


def accuracy(features: np.ndarray, topic: np.ndarray, seed: int) -> float:
    """Accuracy on the papers without a label."""
    known = np.random.default_rng(seed).permutation(len(topic))[: int(LABELED * len(topic))]
    rest = np.setdiff1d(np.arange(len(topic)), known)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=500))
    return float(model.fit(features[known], topic[known]).score(features[rest], topic[rest]))


def main() -> None:
    parser = arguments(__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    report = Report(
        "Features", f"python benchmarks/features.py --seeds {options.seeds}", options.output
    )
    found: dict[str, list[list[float]]] = {}
    for same in SAME:
        for seed in range(options.seeds):
            graph, topic = papers(same, seed)
            for name, features in rows(graph).items():
                values = found.setdefault(name, [[] for _ in SAME])
                values[SAME.index(same)].append(accuracy(features, topic, seed))
    report.add(
        f"Accuracy of the topic of a paper ({TOPICS} topics, {NODES:,} papers, {LABELED:.0%} "
        "labeled), mean ± half of the range over the seeds."
    )
    cells = [
        [name, *(f"{np.mean(x):.3f} ±{np.ptp(x) / 2:.3f}" for x in values)]
        for name, values in found.items()
    ]
    columns = ["features", *(f"{same:.0%} of the citations within a topic" for same in SAME)]
    report.add(markdown(columns, cells))
    report.save()


if __name__ == "__main__":
    main()
