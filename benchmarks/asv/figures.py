"""The ten figures that matter, for asv: ``asv run`` in benchmarks/, then ``asv publish``.

Graphs are generated, so that every commit can be measured. Kernels are compiled in `setup`.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from atpgraph import (
    ATP,
    LinkPredictor,
    Reachability,
    break_cycles,
    citation_dag,
    levels,
    noisy_hierarchy,
    random_dag,
    read_edgelist,
    write_edgelist,
)


class Graph:
    """Reading a file, breaking cycles, levels."""

    def setup(self) -> None:
        self.noisy, self.truth = noisy_hierarchy(5_000, 50_000, 3_000, random_state=0)
        self.folder = tempfile.TemporaryDirectory()
        self.file = Path(self.folder.name) / "graph.txt"
        write_edgelist(self.noisy, self.file)
        self.broken = break_cycles(self.noisy)
        self.time_levels()
        self.time_read()

    def teardown(self) -> None:
        self.folder.cleanup()

    def time_read(self) -> None:
        read_edgelist(self.file)

    def time_break_cycles(self) -> None:
        break_cycles(self.noisy)

    def track_removed_edges(self) -> int:
        return len(self.broken.removed)

    def track_f1_of_planted_edges(self) -> float:
        return self.broken.agreement(self.truth).f1

    def time_levels(self) -> None:
        levels(self.broken.dag)


class Paths:
    """The exact index."""

    def setup(self) -> None:
        self.dag = random_dag(20_000, 100_000, random_state=0)
        self.reach = Reachability(self.dag, index="labels")
        rng = np.random.default_rng(0)
        self.sources, self.targets = rng.integers(0, 20_000, (2, 100_000))
        self.time_hundred_thousand_pairs()

    def time_build(self) -> None:
        Reachability(self.dag, index="labels")

    def time_hundred_thousand_pairs(self) -> None:
        self.reach.reaches_codes(self.sources, self.targets)


class Vectors:
    """The embedding: time, and how well it keeps the paths."""

    def setup(self) -> None:
        self.graph = citation_dag(3_000, 12_000, random_state=0)
        self.model = ATP(n_components=32).fit(self.graph)

    def time_fit(self) -> None:
        ATP(n_components=32).fit(self.graph)

    def track_f1(self) -> float:
        return self.model.fidelity_.f1


class Links:
    """The link predictor."""

    def setup(self) -> None:
        self.graph = citation_dag(2_000, 12_000, random_state=0)
        self.model = LinkPredictor().fit(self.graph)

    def track_auc_of_hidden_edges(self) -> float:
        return self.model.validation_["link"]["auc"]
