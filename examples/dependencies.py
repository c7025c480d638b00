"""The imports of your standard library: cycles to cut, layers, and what a change can break."""

from atpgraph import Reachability, break_cycles, levels
from atpgraph.datasets import python_imports


def main() -> None:
    broken = break_cycles(python_imports(), random_state=0)
    dag = broken.dag
    print(f"{dag.n_nodes} modules, {broken.graph.n_edges} imports")

    print(f"\ncut these to get rid of all cycles ({len(broken.removed)} in all):")
    for (module, imported), _, cycle in broken.reasons(3):
        print(f"  {module} imports {imported}: {' → '.join([*cycle, module])}")

    # An edge points from a module to what it imports, so the last level has what needs nothing.
    level = levels(dag)
    print(f"\n{level.max()} layers; at the bottom: {', '.join(sorted(dag.labels[level > 40])[:4])}")

    # What is affected by a change? Exactly, for all modules at once.
    reach = Reachability(dag)
    affected = reach.n_ancestors()
    print("\na change here has to be tested everywhere:")
    for node in (-affected).argsort(kind="stable")[:3]:
        direct = dag.in_degree[node]
        print(f"  {dag.labels[node]}: {affected[node]} modules, {direct} of them directly")
    print("why json needs enum:", " → ".join(reach.path("json", "enum")))


if __name__ == "__main__":
    main()
