"""Compiled kernels of the learned solver: they update the vectors of rows; columns stay fixed.

`near` holds the vectors of the positions that learn and `far` those of all nodes of the other side,
float32 and padded to a multiple of 16 columns. Component `constant` of a near vector is multiplied
by the bias of a far one and stays 1; `constant` is −1 if there are no biases.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from atpgraph.closure.panel import COLUMNS, WORDS
from atpgraph.closure.paths import PanelRound, take
from atpgraph.util.arrays import (
    AnyArray,
    BoolArray,
    Float32Array,
    Float64Array,
    Int32Array,
    UInt64Array,
)
from atpgraph.util.jit import fast_kernel, inlined_kernel, popcount

GROUP = 8  # rivals that a row meets at a time
_ROWS = 64  # first vectors made at a time
_BITS, _WORDS, _COLUMNS = np.uint64(64), np.uint64(WORDS), np.uint64(COLUMNS)


class Side(NamedTuple):
    """The samples that the vectors of one side learn from."""

    far: Float32Array  # vectors of the other side, which stay fixed
    only: BoolArray  # nodes whose vectors learn
    levels: Int32Array
    table: Float32Array  # f(Δ)


class Steps(NamedTuple):
    """Parameters of the steps of a round."""

    passes: int  # repetitions over the rows
    draws: int  # descendants that a row draws in each pass
    edges: int  # successors that it draws as well
    hard: int  # columns at which a row with all its draws looks for hard non-paths; 0 for none
    constant: int  # the near component that stays 1, or −1
    margin: np.float32  # scores of non-paths belong below −margin,
    hard_margin: np.float32  # of hard ones below −hard_margin
    clip: np.float32  # largest slope
    rate: np.float32  # learning rate
    decay: np.float32  # penalty
    fits: np.float32  # loss per path below which a row skips its other passes


class Rivals(NamedTuple):
    """Columns of a panel in groups of :data:`GROUP`, in the order in which rows are paired with
    them.
    """

    columns: UInt64Array  # places in the panel
    vectors: Float32Array  # a copy of their vectors, small enough for the cache
    squares: Float32Array  # mean squares of the vectors


class Room(NamedTuple):
    """Scratch space of a task."""

    vector: Float32Array  # the vector that learns, as a row
    paths: Float32Array  # vectors of the nodes that it has paths to
    wanted: Float32Array  # scores of these paths
    slopes: Float32Array  # of a group of rivals


class HalfRound(NamedTuple):
    """Input of the tasks of half a round: the vectors to learn, and their samples."""

    near: Float32Array
    seen: Float32Array
    drawn: PanelRound
    rivals: Rivals
    side: Side
    how: Steps

    def arrays(self) -> dict[str, AnyArray]:
        """Return all parts as arrays by name; numbers become arrays without dimensions."""
        parts = {"near": self.near, "seen": self.seen}
        for part in _PARTS:
            values = getattr(self, part)._asdict()
            parts |= {f"{part}.{name}": np.asarray(value) for name, value in values.items()}
        return parts

    @classmethod
    def of(cls, arrays: dict[str, AnyArray]) -> HalfRound:
        """Return the half-round that :meth:`arrays` described."""
        parts = {
            part: kind(*(arrays[f"{part}.{name}"][()] for name in kind._fields))
            for part, kind in _PARTS.items()
        }
        return cls(arrays["near"], arrays["seen"], **parts)


_PARTS: dict[str, Any] = {"drawn": PanelRound, "rivals": Rivals, "side": Side, "how": Steps}


class Landmarks(NamedTuple):
    """Input for computing the initial vectors."""

    columns: Int32Array  # landmarks: the first columns of a panel
    weights: Float32Array  # the vector that each landmark contributes, per unit of score
    base: Float32Array  # the vector of a node that reaches no landmark
    calm: np.float32  # `seen` becomes this, plus
    trust: np.float32  # this times the squared length of a vector
    margin: np.float32  # added to the score of a landmark that is reached
    noise: np.float32  # bounds of the noise that is added
    free: int  # number of components that get noise


@fast_kernel
def xorshift(state: np.uint64) -> np.uint64:
    """Return the next state of Marsaglia's generator."""
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    return state ^ (state << np.uint64(17))


@inlined_kernel
def product(left: Float32Array, u: int, right: Float32Array, v: int) -> np.float32:
    """⟨left[u], right[v]⟩."""
    total = np.float32(0)
    for c in range(left.shape[1]):
        total += left[u, c] * right[v, c]
    return total


@inlined_kernel
def adagrad_step(
    mass: np.float32,
    part: int,
    rivals: Rivals,
    at: int,
    free: np.uint64,
    margin: np.float32,
    how: Steps,
    room: Room,
) -> tuple[np.float32, np.float32]:
    """Take one step of Adagrad for x = vector[0] with one path and a group of rivals.

    It moves ⟨x, paths[part]⟩ toward wanted[part], and the product with rival at + r below −margin
    if bit r of `free` is set. The whole vector has one learning rate: `mass` is the sum of the mean
    squared gradients so far. Returns the sum of the squared errors, and the new mass.
    """
    vector, paths, slopes = room.vector, room.paths, room.slopes
    others, squares = rivals.vectors, rivals.squares
    width = vector.shape[1]
    zero = np.float32(0)
    # Sums in local variables, not in an array: these stay in vector registers.
    score = square = s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = zero
    for c in range(width):
        x = vector[0, c]
        y = paths[part, c]
        score += x * y
        square += y * y
        s0 += x * others[at, c]
        s1 += x * others[at + 1, c]
        s2 += x * others[at + 2, c]
        s3 += x * others[at + 3, c]
        s4 += x * others[at + 4, c]
        s5 += x * others[at + 5, c]
        s6 += x * others[at + 6, c]
        s7 += x * others[at + 7, c]
    slopes[0], slopes[1], slopes[2], slopes[3] = s0, s1, s2, s3
    slopes[4], slopes[5], slopes[6], slopes[7] = s4, s5, s6, s7
    slope = score - room.wanted[part]
    loss = slope * slope
    slope = min(max(slope, -how.clip), how.clip)
    mass += slope * slope * square / np.float32(width)
    for r in range(GROUP):
        is_free = (free >> np.uint64(r)) & np.uint64(1) != 0
        excess = max(slopes[r] + margin, zero) if is_free else zero
        loss += excess * excess
        slopes[r] = min(excess, how.clip)
        mass += slopes[r] * slopes[r] * squares[at + r]
    length = how.rate / np.sqrt(mass + np.float32(1e-8))
    keep = np.float32(1) - length * how.decay
    toward = length * slope
    # Four rivals per loop: with eight, the compiler does not check that the rows are apart.
    for g in range(0, GROUP, 4):
        f0, f1, f2, f3 = (
            length * slopes[g], length * slopes[g + 1], length * slopes[g + 2],
            length * slopes[g + 3],
        )  # fmt: skip
        if g > 0 and f0 == 0 and f1 == 0 and f2 == 0 and f3 == 0:  # often nothing is to push down
            continue
        for c in range(width):
            vector[0, c] = (
                keep * vector[0, c] - toward * paths[part, c] - f0 * others[at + g, c]
                - f1 * others[at + g + 1, c] - f2 * others[at + g + 2, c]
                - f3 * others[at + g + 3, c]
            )  # fmt: skip
        keep, toward = np.float32(1), zero
    if how.constant >= 0:
        vector[0, how.constant] = np.float32(1)
    return loss, mass


@inlined_kernel
def hardest(
    i: np.uint64, first: int, drawn: PanelRound, rivals: Rivals, worst: Rivals, room: Room
) -> np.uint64:
    """Copy the rivals that position i does not reach and that score highest, above 0, to `worst`.

    Examines the first `first` rivals. Returns a number with one set bit for each rival copied.
    """
    vector, best = room.vector, room.slopes
    places = np.empty(GROUP, dtype=np.int64)
    least = np.float32(0)
    many = 0
    for r in range(first):
        if r % GROUP >= GROUP // 2:  # these are the popular ones, often the same
            continue
        score = product(vector, 0, rivals.vectors, r)
        if score <= least:
            continue
        column = rivals.columns[r]
        word = drawn.bits[column // _COLUMNS, i, column // _BITS % _WORDS]
        if (word >> column % _BITS) & np.uint64(1) != 0:
            continue
        at = many if many < GROUP else GROUP - 1
        many = min(many + 1, GROUP)
        while at > 0 and best[at - 1] < score:
            best[at] = best[at - 1]
            places[at] = places[at - 1]
            at -= 1
        best[at] = score
        places[at] = r
        if many == GROUP:
            least = best[GROUP - 1]
    for at in range(GROUP):
        r = places[at] if at < many else 0
        worst.squares[at] = rivals.squares[r]
        for c in range(vector.shape[1]):
            worst.vectors[at, c] = rivals.vectors[r, c]
    return (np.uint64(1) << np.uint64(many)) - np.uint64(1)


@fast_kernel
def learn_rows(
    task: tuple[int, int, int],
    given: HalfRound,
    places: Int32Array,
    near: Float32Array,
    seen: Float32Array,
    totals: Float64Array,
) -> None:
    """Take steps for the vectors of a range of positions; `task` is the range and a seed.

    `places` are the rows of `near` with these vectors. The same rows of `seen` have the sum of the
    mean squared gradients of each so far.

    Each row draws up to `draws` descendants, then `edges` successors, starting at a random one.
    Each of these is paired with a random group of rivals; rivals that the row does not reach and
    that score above −margin are pushed down. `totals` gets the sum of losses and the number of
    paths.
    """
    drawn, rivals, side, how = given.drawn, given.rivals, given.side, given.how
    far, width = side.far, near.shape[1]
    most = how.draws + how.edges
    words = np.empty((drawn.uniform + 63) >> 6, dtype=np.uint64)
    targets = np.empty(most, dtype=np.int32)
    paths = np.empty((most, width), dtype=np.float32)
    wanted = np.empty(most, dtype=np.float32)
    vector = np.empty((1, width), dtype=np.float32)
    room = Room(vector, paths, wanted, np.empty(GROUP, dtype=np.float32))
    worst = Rivals(
        rivals.columns, np.empty((GROUP, width), dtype=np.float32), np.empty(GROUP, np.float32)
    )
    groups = np.uint64(len(rivals.columns) // GROUP)
    # The positions that learn: in a grown graph few of them, met in thousands of passes.
    first = task[0]
    rows = np.empty(len(places), dtype=np.int64)
    many = 0
    for i in range(first, task[1]):
        if drawn.counts[i] > 0 and side.only[drawn.nodes[i]]:
            rows[many] = i
            many += 1
    state = np.uint64(task[2])
    loss = 0.0
    fits = np.zeros(many, dtype=np.bool_)
    for number in range(how.passes * many):
        if fits[number % many]:
            continue
        i = rows[number % many]
        before = loss
        u, row = drawn.nodes[i], places[i - first]
        state = xorshift(state)
        # 32 bits, so that adding a whole number does not round.
        place = np.float64(state >> np.uint64(32)) / 2.0**32
        count: Any = min(np.int64(drawn.counts[i]), how.draws)
        take(i, count, place, drawn, words, targets)
        degree = drawn.indptr[i + 1] - drawn.indptr[i]
        start = np.int64(place * degree)
        for part in range(how.edges):
            edge = drawn.indptr[i] + (start + part) % degree
            targets[count + part] = drawn.nodes[drawn.successors[edge]]
        # Copy all at once: the processor then waits for many cache lines at a time.
        for part in range(count + how.edges):
            v = targets[part]
            wanted[part] = side.table[abs(side.levels[v] - side.levels[u])]
            for c in range(width):
                paths[part, c] = far[v, c]
        for c in range(width):
            vector[0, c] = near[row, c]
        mass = seen[row]
        if how.hard > 0:
            # One group of the highest-scoring non-paths, together with the first path. A row with
            # few paths looks at fewer columns, so the search never costs more than the steps.
            looked_at = how.hard * (count + how.edges) // most
            free = hardest(np.uint64(i), looked_at, drawn, rivals, worst, room)
            if free != 0:
                lost, mass = adagrad_step(mass, 0, worst, 0, free, how.hard_margin, how, room)
        for part in range(count + how.edges):
            state = xorshift(state)
            # The upper half of the state times the length, shifted down: a number below it.
            group = ((state >> np.uint64(32)) * groups) >> np.uint64(32)
            at: Any = GROUP * np.int64(group)
            free = np.uint64(0)
            for j in range(GROUP):
                column = rivals.columns[at + j]  # unsigned, like i: no wraparound checks
                word = drawn.bits[column // _COLUMNS, np.uint64(i), column // _BITS % _WORDS]
                free |= (~(word >> column % _BITS) & np.uint64(1)) << np.uint64(j)
            lost, mass = adagrad_step(mass, part, rivals, at, free, how.margin, how, room)
            loss += float(lost)
        for c in range(width):
            near[row, c] = vector[0, c]
        seen[row] = mass
        totals[1] += count + how.edges
        fits[number % many] = loss - before < how.fits * (count + how.edges)
    totals[0] += loss / 2


@fast_kernel
def first_vectors(
    drawn: PanelRound,
    given: Landmarks,
    side: Side,
    vectors: Float32Array,
    seen: Float32Array,
    task: tuple[int, int, int],
) -> None:
    """Make the first vectors of the nodes at a range of positions; `task` is the range and a seed.

    A vector is `base` plus Σ (f(Δ) + margin) weights[p] over the landmarks p that its node reaches,
    plus noise.
    """
    one = np.uint64(1)
    columns, width = given.columns, vectors.shape[1]
    reached = np.empty(64 + 3, dtype=np.int64)
    values = np.empty(64 + 3, dtype=np.float32)
    totals = np.empty((_ROWS, width), dtype=np.float32)
    state = np.uint64(task[2])
    for begin in range(task[0], task[1], _ROWS):
        stop = min(begin + _ROWS, task[1])
        for i in range(begin, stop):
            for c in range(width):
                totals[i - begin, c] = given.base[c]
        # The weights of the landmarks in a word fit the first cache, for many rows.
        for w in range((len(columns) + 63) >> 6):
            for i in range(begin, stop):
                u, row = drawn.nodes[i], i - begin
                word = drawn.bits[w // WORDS, i, w % WORDS]
                many = 0
                while word != 0:
                    low = word & (~word + one)
                    word ^= low
                    p: Any = 64 * w + np.int64(popcount(low - one))
                    if p < len(columns) and columns[p] != u:
                        climb = abs(side.levels[columns[p]] - side.levels[u])
                        reached[many] = p
                        values[many] = side.table[climb] + given.margin
                        many += 1
                for at in range(many, many + 3):  # pad to a multiple of four
                    reached[at] = 0
                    values[at] = 0
                for at in range(0, many, 4):
                    a, b, d, e = values[at], values[at + 1], values[at + 2], values[at + 3]
                    p, q, r, s = reached[at], reached[at + 1], reached[at + 2], reached[at + 3]
                    for c in range(width):
                        totals[row, c] += (
                            a * given.weights[p, c] + b * given.weights[q, c]
                            + d * given.weights[r, c] + e * given.weights[s, c]
                        )  # fmt: skip
        for i in range(begin, stop):
            u, row = drawn.nodes[i], i - begin
            square = np.float32(0)
            for c in range(width):
                square += totals[row, c] * totals[row, c]
            seen[u] = given.calm + given.trust * square
            for c in range(given.free):
                if c & 3 == 0:  # four components per state
                    state = xorshift(state)
                part = (state >> np.uint64(16 * (c & 3))) & np.uint64(0xFFFF)
                totals[row, c] += given.noise * (
                    np.float32(part) / np.float32(32767.5) - np.float32(1)
                )
            for c in range(width):
                vectors[u, c] = totals[row, c]
