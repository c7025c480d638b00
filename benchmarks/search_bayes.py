"""The search behind the constants of the cycle breaker ``bayes``, on generated graphs only.

Every family of graphs has its own search seeds; constants are chosen there and then looked at on
fresh validation seeds (``--validate``). No real graph is read.

    python benchmarks/search_bayes.py
    python benchmarks/search_bayes.py --validate
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from _common import banded

from atpgraph import PlantedCycles, noisy_hierarchy
from atpgraph.cycles import methods
from atpgraph.cycles.methods import Workspace, remove_by_edge
from atpgraph.cycles.ordering import downward_probability

SEARCH_SEEDS = range(100, 104)
VALIDATION_SEEDS = range(950, 955)
COLDNESS = (1.5, 2.0, 3.0, 4.0, 6.0)
SLACK = (0.98, 1.0, 1.01, 1.02, 1.05, 1.1, 1.2, float("inf"))
# (chains, burn-in, samples): the product's, cheaper ones and a dearer one.
SWEEPS = ((4, 30, 50), (1, 30, 50), (4, 10, 20), (4, 100, 200))


FAMILIES: dict[str, Callable[[int], PlantedCycles]] = {
    "dense 1,500/15,000+500": lambda s: noisy_hierarchy(1500, 15_000, 500, random_state=s),
    "noisy 3,000/15,000+1,800": lambda s: noisy_hierarchy(3000, 15_000, 1800, random_state=s),
    "sparse 3,000/6,000+300": lambda s: noisy_hierarchy(3000, 6000, 300, random_state=s),
    "band 10, 3,000/9,000+300": lambda s: banded(3000, 3, 10, 300, 3, s),
    "band 50, 3,000/15,000+300": lambda s: banded(3000, 5, 50, 300, 3, s),
    "band 30, 5,000/40,000+300": lambda s: banded(5000, 8, 30, 300, 3, s),
    "band 30, 9,000/27,000+300": lambda s: banded(9000, 3, 30, 300, 3, s),
}


@dataclass(frozen=True)
class Constants:
    """The constants of ``bayes``; the defaults are the product's."""

    coldness: float = methods.COLDNESS
    sweeps: tuple[int, int, int] = (methods.N_CHAINS, methods.BURN_IN, methods.N_SAMPLES)


@dataclass(frozen=True)
class Outcome:
    """What the sampler removed from one graph, and what sa-g did."""

    f1: float
    removed: int
    agony_f1: float
    agony_removed: int

    def f1_with(self, slack: float) -> float:
        """F1 with the fallback to sa-g where the sampler removes `slack` times as much."""
        return self.agony_f1 if self.removed > slack * self.agony_removed else self.f1


def f1(removed: np.ndarray, planted: np.ndarray) -> float:
    """F1 of the edge numbers that were removed."""
    return 2 * len(np.intersect1d(removed, planted)) / (len(removed) + len(planted))


def outcome(space: Workspace, planted: np.ndarray, constants: Constants) -> Outcome:
    """Run the sampler with these constants on one graph."""
    chains, burn_in, samples = constants.sweeps
    probability, position = downward_probability(
        space.core,
        space.cost,
        space.node_score("sa"),
        space.rng("bayes"),
        coldness=constants.coldness,
        n_chains=chains,
        burn_in=burn_in,
        n_samples=samples,
    )
    removed = remove_by_edge(space, probability, space.drop(position), name="bayes")
    chosen = space.on_cycles.edges[removed]
    by_agony = space.on_cycles.edges[space.solve("sa-g")[0]]
    return Outcome(f1(chosen, planted), len(chosen), f1(by_agony, planted), len(by_agony))


def show(title: str, rows: dict[str, list[float]]) -> None:
    """Print one Markdown table, a column per family and their mean."""
    print(f"\n{title}\n")
    print("| | " + " | ".join(FAMILIES) + " | mean |")
    print("|---|" + "---|" * (len(FAMILIES) + 1))
    for name, values in rows.items():
        cells = [f"{value:.3f}" for value in [*values, float(np.mean(values))]]
        print(f"| {name} | " + " | ".join(cells) + " |")


def main() -> None:
    """Search, or validate."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--validate", action="store_true", help="the chosen constants, fresh seeds")
    validate = parser.parse_args().validate
    seeds = VALIDATION_SEEDS if validate else SEARCH_SEEDS
    cases = {
        family: [
            (Workspace(graph, seed), planted) for seed in seeds for graph, planted in [make(seed)]
        ]
        for family, make in FAMILIES.items()
    }

    def baseline(method: str) -> list[float]:
        return [
            float(
                np.mean(
                    [f1(s.on_cycles.edges[s.solve(method)[0]], planted) for s, planted in graphs]
                )
            )
            for graphs in cases.values()
        ]

    def sampler(constants: Constants) -> list[list[Outcome]]:
        return [[outcome(*case, constants) for case in graphs] for graphs in cases.values()]

    def means(found: list[list[Outcome]], slack: float) -> list[float]:
        return [float(np.mean([o.f1_with(slack) for o in graphs])) for graphs in found]

    never = float("inf")
    shipped = sampler(Constants())
    span = f"seeds {seeds.start}–{seeds.stop - 1}, mean F1"
    rows = {f"`{method}`": baseline(method) for method in ("sa-g", "h-voting")}
    if validate:
        rows["`bayes` without fallback"] = means(shipped, never)
        for slack in SLACK:
            if slack in (methods.SLACK, 1.1):
                rows[f"`bayes`, slack {slack:g}"] = means(shipped, slack)
        show(f"Validation, {span}", rows)
        return
    for coldness in COLDNESS:
        found = shipped if coldness == methods.COLDNESS else sampler(Constants(coldness))
        rows[f"coldness {coldness:g}"] = means(found, never)
    show(f"Coldness, without fallback; {span}", rows)
    rows = {}
    for sweeps in SWEEPS:
        found = shipped if sweeps == Constants().sweeps else sampler(Constants(sweeps=sweeps))
        rows["{} chains, {} + {} sweeps".format(*sweeps)] = means(found, never)
    show(f"Sweeps at coldness {methods.COLDNESS:g}, without fallback; {span}", rows)
    show(
        f"Fallback to sa-g at coldness {methods.COLDNESS:g}; {span}",
        {
            f"slack {slack:g}" if slack < never else "never": means(shipped, slack)
            for slack in SLACK
        },
    )
    rows = {
        "edges removed, against sa-g": [
            float(np.mean([o.removed / o.agony_removed for o in graphs])) for graphs in shipped
        ]
    }
    show("Edges removed by the sampler over those removed by sa-g; seeds as above", rows)


if __name__ == "__main__":
    main()
