"""Package dependencies: the cycles to cut, an order to build in, and what a change can break.

A made-up repository of packages in layers, from applications down to a core. Most packages need
only packages below them; a few careless imports go up and close cycles.
"""

import numpy as np

from atpgraph import Reachability, break_cycles, levels

LAYERS = {"app": 40, "feature": 60, "service": 60, "library": 40, "core": 15}


def repository(rng: np.random.Generator) -> list[tuple[str, str]]:
    """Pairs (package, what it needs)."""
    layers = [[f"{layer}-{i:02d}" for i in range(size)] for layer, size in LAYERS.items()]
    needs = []
    for depth, packages in enumerate(layers[:-1]):
        below = [name for layer in layers[depth + 1 :] for name in layer]
        for package in packages:
            chosen = rng.choice(below, rng.integers(2, 6), replace=False)
            needs += [(package, str(name)) for name in chosen]
    for _ in range(12):  # the careless ones
        low, high = sorted(rng.choice(len(layers), 2, replace=False))[::-1]
        needs.append((str(rng.choice(layers[low])), str(rng.choice(layers[high]))))
    return needs


def main() -> None:
    broken = break_cycles(repository(np.random.default_rng(1)), random_state=0)
    dag = broken.dag
    print(f"{dag.n_nodes} packages, {broken.graph.n_edges} dependencies")

    print(f"\ncut these {len(broken.removed)} to get rid of all cycles:")
    for package, needed in broken.removed_edges:
        print(f"  {package} needs {needed}")

    # An edge points from a package to what it needs, so the highest level is built first.
    level = levels(dag)
    print(f"\n{level.max()} rounds of builds, all packages of a round side by side:")
    for number in range(level.max(), 0, -1):
        names = sorted(dag.labels[level == number])
        print(f"  {len(names):3} packages: {', '.join(names[:4])}, …")

    # Who is affected by a change? Exactly, for all packages at once.
    reach = Reachability(dag)
    affected = reach.n_ancestors()
    print("\na change here has to be tested everywhere:")
    for node in (-affected).argsort(kind="stable")[:3]:
        share = affected[node] / (dag.n_nodes - 1)
        direct = dag.in_degree[node]
        print(f"  {dag.labels[node]}: {affected[node]} packages ({share:.0%}), {direct} directly")
    print("why app-00 needs core-13:", " → ".join(reach.path("app-00", "core-13")))


if __name__ == "__main__":
    main()
