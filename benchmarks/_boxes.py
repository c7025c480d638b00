"""Box and order embeddings, trained to tell the paths of a graph: rivals for the fidelity table.

Boxes after Boratko et al., "Capacity and Bias of Learned Geometric Embeddings for Directed Graphs"
(NeurIPS 2021): a path u → v means that the box of v contains that of u, and its probability is
Vol(u ∩ v) / Vol(u), where corners and volumes are smoothed by temperatures, learnt for each
dimension ("boxes") or for each node and dimension ("t-boxes", the record there). Order embeddings
after Vendrov et al. (ICLR 2016): a path means that no coordinate of v exceeds that of u. Both learn
from paths drawn from the transitive closure, as ATP does, each against non-paths of the same
source, half of their targets drawn uniformly, half like those of paths, true paths left out.
Needs torch.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import partial

import numpy as np
import torch
from _hard_pairs import ExactPaths
from torch import Tensor
from torch.nn import functional

LOG_HALF = float(np.log(0.5))


@dataclass(frozen=True)
class Training:
    """How a rival is trained; rate, batch and spread are searched on validation graphs."""

    rate: float
    batch: int = 1024
    spread: float = 1.0  # standard deviation of the first corners
    weight: float = 0.9  # of the non-paths in the loss
    paths: int = 96  # drawn for each node over the whole training
    negatives: int = 6


class Boxes(torch.nn.Module):
    """Gumbel boxes: a corner, the negative of the other, and temperatures of both smoothings."""

    def __init__(self, n: int, numbers: int, spread: float, own_temperatures: bool) -> None:
        super().__init__()
        self.own = own_temperatures
        self.dim = numbers // (4 if own_temperatures else 2)
        # The first boxes are about 2 wide, in places that differ by the spread.
        corners = spread * torch.randn(n, 2, self.dim) - 1
        first = [corners.reshape(n, -1)]
        temperatures = torch.cat([torch.full((self.dim,), _unsoft(x)) for x in (0.1, 1.0)])
        if own_temperatures:
            first.append(temperatures.expand(n, -1))
        else:
            self.temperatures = torch.nn.Parameter(temperatures)
        self.nodes = torch.nn.Embedding.from_pretrained(
            torch.cat(first, dim=1), freeze=False, sparse=True
        )

    def forward(self, u: Tensor, v: Tensor) -> Tensor:
        """log P(path) for each u and each of the row of v; of shape v."""
        d = self.dim
        near, far = self.nodes(u)[:, None], self.nodes(v)
        if self.own:
            warm = functional.softplus(0.5 * (near[..., 2 * d :] + far[..., 2 * d :])) + 1e-3
            alone = functional.softplus(near[..., 3 * d :]) + 1e-3
        else:
            warm = functional.softplus(self.temperatures) + 1e-3
            alone = warm[..., d:]
        near, far = near[..., : 2 * d], far[..., : 2 * d]
        meeting = warm[..., :d]
        apart = (near - far).abs() / torch.cat([meeting, meeting], dim=-1)
        smooth = torch.log1p(torch.exp(-apart))
        corner = torch.maximum(near, far)
        low = corner[..., :d] + meeting * smooth[..., :d]
        high = corner[..., d:] + meeting * smooth[..., d:]
        overlap = _log_side(-(low + high), warm[..., d:]).sum(dim=-1)
        whole = _log_side(-(near[..., :d] + near[..., d:]), alone).sum(dim=-1)
        return (overlap - whole).clamp(max=-1e-6)

    def loss(self, scores: Tensor, wrong: Tensor, weight: float) -> Tensor:
        """Cross entropy; of the non-paths those count most that look most like paths."""
        others = scores[:, 1:]
        miss = -torch.log(-torch.expm1(others))
        share = (others + miss).masked_fill(wrong, -1e9).softmax(dim=1).detach()
        return ((weight - 1) * scores[:, 0] + weight * (share * miss).sum(dim=1)).mean()


class Orders(torch.nn.Module):
    """Order embeddings: minus the square of what v exceeds u by."""

    def __init__(self, n: int, numbers: int, spread: float) -> None:
        super().__init__()
        self.nodes = torch.nn.Embedding.from_pretrained(
            spread * torch.rand(n, numbers), freeze=False, sparse=True
        )

    def forward(self, u: Tensor, v: Tensor) -> Tensor:
        """Minus the violation, for each u and each of the row of v."""
        near, far = self.nodes(u).abs()[:, None], self.nodes(v).abs()
        return -functional.relu(far - near).square().sum(dim=-1)

    def loss(self, scores: Tensor, wrong: Tensor, weight: float) -> Tensor:
        """Violations of paths, and what those of non-paths lack of 1."""
        lack = functional.relu(1 + scores[:, 1:]).masked_fill(wrong, 0)
        return ((weight - 1) * scores[:, 0] + weight * lack.mean(dim=1)).mean()


KINDS = {
    "boxes": partial(Boxes, own_temperatures=False),
    "t-boxes": partial(Boxes, own_temperatures=True),
    "order embeddings": Orders,
}


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained rival."""

    model: torch.nn.Module
    seconds: float  # CPU

    def scores(self, u: np.ndarray, v: np.ndarray, step: int = 16384) -> np.ndarray:
        """Score of every pair."""
        out = np.empty(len(u))
        with torch.no_grad():
            for i in range(0, len(u), step):
                ends = (torch.as_tensor(x[i : i + step].astype(np.int64)) for x in (u, v))
                a, b = ends
                out[i : i + step] = self.model(a, b[:, None])[:, 0].numpy()
        return out

    def row(self, u: int, n: int) -> np.ndarray:
        """Scores of one node with all."""
        with torch.no_grad():
            return self.model(torch.tensor([u]), torch.arange(n)[None])[0].numpy()


def train(kind: str, paths: ExactPaths, numbers: int, how: Training, seed: int = 0) -> Trained:
    """Train a rival with `numbers` numbers for each node."""
    started = time.process_time()
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    n = len(paths.sides[0].sizes)
    model = KINDS[kind](n, numbers, how.spread)
    sparse = torch.optim.SparseAdam(list(model.nodes.parameters()), lr=how.rate)
    shared = [p for name, p in model.named_parameters() if not name.startswith("nodes")]
    dense = torch.optim.Adam(shared, lr=how.rate) if shared else None
    nodes = np.flatnonzero(paths.sides[0].sizes > 0).astype(np.int32)
    columns = np.flatnonzero(paths.dag.in_degree > 0)
    draws = 8
    rounds = max(round(how.paths / draws), 1)
    for turn in range(rounds):
        u, v = paths.draw(nodes, draws, np.uint64(rng.integers(1, 2**63)))
        order = rng.permutation(len(u))
        u, v = u[order], v[order]
        half = how.negatives // 2
        other = np.concatenate(
            [rng.choice(columns, (len(u), half)), rng.choice(v, (len(u), how.negatives - half))], 1
        )
        wrong = paths.joined(np.repeat(u, how.negatives), other.reshape(-1)).reshape(other.shape)
        wrong |= other == u[:, None]
        targets = torch.as_tensor(np.concatenate([v[:, None], other], axis=1).astype(np.int64))
        sources, masked = torch.as_tensor(u.astype(np.int64)), torch.as_tensor(wrong)
        for i in range(0, len(u), how.batch):
            left = 1 - (turn + i / len(u)) / rounds
            for optimizer in (sparse, dense):
                if optimizer is not None:
                    optimizer.zero_grad()
                    optimizer.param_groups[0]["lr"] = how.rate * left
            part = slice(i, i + how.batch)
            scores = model(sources[part], targets[part])
            model.loss(scores, masked[part], how.weight).backward()
            sparse.step()
            if dense is not None:
                dense.step()
    return Trained(model, time.process_time() - started)


def _log_side(length: Tensor, warmth: Tensor) -> Tensor:
    """log of the smoothed length of a side."""
    return torch.log(warmth * functional.softplus(length / warmth) + 1e-23)


def _unsoft(x: float) -> float:
    """What softplus turns into x."""
    return float(np.log(np.expm1(x)))
