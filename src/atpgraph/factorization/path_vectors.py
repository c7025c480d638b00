"""What is learnt from paths and non-paths, whichever way they are drawn: vectors with biases."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from atpgraph.errors import InputError
from atpgraph.factorization._simd import TILE
from atpgraph.factorization.nnls import Factorization
from atpgraph.util.arrays import AnyArray, Float32Array, Float64Array, Int32Array, Int64Array
from atpgraph.util.checkpoints import Loop
from atpgraph.util.progress import stage
from atpgraph.util.random import rng_state
from atpgraph.util.threads import Workers

Start = tuple[Float32Array, Float32Array] | None

_ROWS = 2**16  # of the first vectors at a time
_FIRST = np.float32(0.1)  # standard deviation of the first components
_SETTLED = np.float32(60)  # sum of squared gradients that a vector of an earlier fit has seen


@dataclass(frozen=True)
class Descent:
    """How pairs are drawn and learnt, chosen on validation graphs (docs/evidence/defaults.md).

    Attributes
    ----------
    draws : int
        Paths drawn from each node in a round, fewer where it has fewer.
    negatives : int
        For each path so many columns are drawn uniformly, and so many like the targets of paths;
        by panels always four.
    margin : float
        Scores of pairs without a path are to be below −margin.
    rate : float
        Learning rate.
    clip : float
        Largest slope of the loss.
    fewest : int
        Paths in a round, however small the graph: there they are drawn again and again.
    edges : int
        Edges that each node draws beside its paths, where it draws by panels.
    """

    draws: int = 16
    negatives: int = 4
    margin: float = 1.5
    rate: float = 0.2
    clip: float = 4.0
    fewest: int = 8192
    edges: int = 2


def checked(
    levels: npt.ArrayLike, table: npt.ArrayLike, regularization: float
) -> tuple[Int32Array, Float64Array]:
    """Levels and kernel as arrays; refuses what cannot be fitted."""
    level = np.ascontiguousarray(levels, dtype=np.int32)
    values = np.ascontiguousarray(table, dtype=np.float64)
    span = int(level.max(initial=1))
    if len(values) < span:
        raise InputError(f"The kernel table has {len(values)} entries for {span} levels.")
    bad = np.flatnonzero(values[1:span] <= 0)
    if len(bad):
        raise InputError(
            f"The kernel is {values[bad[0] + 1]} at a difference of {bad[0] + 1}; "
            "the score of a path has to be above 0."
        )
    if not 0.0 <= regularization < np.inf:
        raise InputError(f"regularization is {regularization}; it must be finite and not negative.")
    return level, values


class PathVectors(ABC):
    """Vectors being learnt, in rounds; a subclass says what a round is.

    Parameters
    ----------
    sizes : int64 array
        Number of descendants of every node, 0 where there is none.
    levels : int32 array
        Nodes of level 1 have no ancestors.
    table : float64 array
        f(Δ).
    climbs : int array
        Δ of some paths.
    k, regularization, descent
        As for :func:`~atpgraph.factorization.fit_pairs`.
    """

    def __init__(
        self,
        sizes: Int64Array,
        levels: Int32Array,
        table: Float64Array,
        climbs: Int32Array,
        k: int,
        regularization: float,
        descent: Descent,
    ) -> None:
        self.sizes, self.levels, self.descent, self.k = sizes, levels, descent, k
        self.decay = np.float32(regularization)
        self.bias = k - 2 if k >= 3 else -1
        self.free = k - 2 if k >= 3 else k
        # The constants were chosen for the log kernel, whose values are 1.3 to 6; others are taken
        # in a unit that brings their mean there.
        mean = float(table[climbs].mean()) if len(climbs) else 1.0
        self.unit = mean / float(np.clip(mean, 1.0, 4.0))
        self.table = (table / self.unit).astype(np.float32)
        self.margin = descent.margin * self.unit
        shape = (2, len(levels), -(-k // TILE) * TILE)
        self.source, self.target = np.zeros(shape, dtype=np.float32)
        self.seen = np.zeros(shape[:2], dtype=np.float32)

    @property
    @abstractmethod
    def is_empty(self) -> bool:
        """Whether there is nothing to learn from."""

    @abstractmethod
    def round(self, workers: Workers, rng: np.random.Generator) -> float:
        """Draw pairs and learn them; the mean loss for a path."""

    def run(
        self, workers: Workers, rng: np.random.Generator, rounds: int, tol: float, loop: Loop | None
    ) -> Factorization:
        """Rounds, until the loss has fallen to `tol` of that of the first; taken up where an
        earlier run left off.
        """
        history: list[float] = []
        converged = self.is_empty
        with stage("factorise", rounds) as progress:
            kept = None if loop is None else loop.state()
            if kept is not None:
                history, converged = self.resume(*kept, rng)
                progress.advance(len(history))
            while not converged and len(history) < rounds:
                history.append(self.round(workers, rng))
                converged = history[-1] <= tol * history[0]
                progress.advance()
                if loop is not None:
                    facts = {"history": history, "converged": converged, "random": rng_state(rng)}
                    loop.keep(self.parts, facts, at_once=converged or len(history) == rounds)
        source, target = self.finished()
        objective = np.array(history)
        return Factorization(source, target, objective, len(history), converged, self.margin)

    def parts(self) -> dict[str, AnyArray]:
        """What a later run needs to go on."""
        return {"source": self.source, "target": self.target, "seen": self.seen}

    def resume(
        self, parts: dict[str, AnyArray], facts: dict[str, Any], rng: np.random.Generator
    ) -> tuple[list[float], bool]:
        """Take up what an earlier run kept; its losses, and whether it was done."""
        self.source, self.target, self.seen = (
            np.array(parts[name]) for name in ("source", "target", "seen")
        )
        rng.bit_generator.state = facts["random"]
        return list(facts["history"]), bool(facts["converged"])

    def begin(self, rng: np.random.Generator, start: Start) -> None:
        """The first vectors: those given, which then take small steps, or added at random."""
        for at, vectors in enumerate((self.source, self.target)):
            self._begin(at, vectors, rng, None if start is None else start[at])

    def _begin(
        self, at: int, vectors: Float32Array, rng: np.random.Generator, given: Float32Array | None
    ) -> None:
        free, bias = self.free, self.bias
        blank = np.arange(len(vectors))
        if given is not None:
            blank = np.flatnonzero(given[:, 0] == 0)
            blank = blank[~np.any(given[blank, :free] != 0, axis=1)]
            vectors[:, :free] = given[:, :free]
            if self.unit != 1:
                vectors[:, :free] *= np.float32(self.unit**-0.5)
            self.seen[at] = _SETTLED
            self.seen[at, blank] = 0
        for first in range(0, len(blank), _ROWS):
            some = blank[first : first + _ROWS]
            noise = rng.standard_normal((len(some), free), dtype=np.float32)
            vectors[some, :free] += _FIRST * noise
        if bias >= 0:
            vectors[:, bias + 1 - at] = 1
            if given is not None:
                vectors[:, bias + at] = given[:, bias + at] / np.float32(self.unit)
                vectors[blank, bias + at] = 0

    def finished(self) -> tuple[Float32Array, Float32Array]:
        """The vectors, in the scale of the kernel; a node without any path scores none."""
        # Not copied where they are not padded: of large graphs they are most of the memory.
        source, target = (np.ascontiguousarray(x[:, : self.k]) for x in (self.source, self.target))
        vectors = source, target
        without = self.sizes == 0, self.levels == 1
        for side, none in zip(vectors, without, strict=True):
            if self.unit != 1:
                side[:, : self.free] *= np.float32(np.sqrt(self.unit))
            side[none, : self.free] = 0
        if self.bias >= 0:
            biases = [side[:, self.bias + at] for at, side in enumerate(vectors)]
            for at, bias in enumerate(biases):
                bias *= np.float32(self.unit)
                bias[without[at]] = 0
            highest = [max(float(bias.max(initial=0.0)), 0.0) for bias in biases]
            for at, bias in enumerate(biases):
                bias[without[at]] = -self.margin - highest[1 - at]
        return vectors
