"""Clean a taxonomy: find links that point the wrong way, then ask which categories are of a kind.

The catalog is made up: "folding oak tables" are a kind of "folding tables" and of "oak tables".
Somebody entered 15 links backwards. They close cycles, and on a cycle everything is a kind of
everything else.
"""

from itertools import combinations

import numpy as np

from atpgraph import ATP, DiGraph, break_cycles, plant_cycles

NOUNS = ("tables", "chairs", "lamps", "shelves")
QUALITIES = ("cheap", "folding", "garden", "large", "oak", "vintage")


def catalog() -> list[tuple[str, str]]:
    """Categories of up to three qualities, each linked to those with one quality fewer."""
    links = [(noun, "products") for noun in NOUNS]
    for noun in NOUNS:
        for size in (1, 2, 3):
            for chosen in combinations(QUALITIES, size):
                for dropped in chosen:
                    fewer = [word for word in chosen if word != dropped]
                    links.append((" ".join([*chosen, noun]), " ".join([*fewer, noun])))
    return links


def main() -> None:
    graph, wrong = plant_cycles(DiGraph.from_edges(catalog()), 15, random_state=0)
    print(f"{graph.n_nodes} categories, {graph.n_edges} links, {len(wrong)} of them wrong")

    # Links to review. The mistakes were planted, so two methods can be compared.
    for method in ("bayes", "h-voting"):
        cleaned = break_cycles(graph, method, random_state=0)
        check = cleaned.agreement(wrong)
        found = f"precision {check.precision:.2f}, recall {check.recall:.2f}"
        print(f"{method}: {len(cleaned.removed)} links to review, {found}")
    for at in (-cleaned.scores).argsort(kind="stable")[:3]:
        special, general = cleaned.removed_edges[at]
        print(f"  {special!r} is not a kind of {general!r}: {cleaned.scores[at]:.0f} votes of 6")

    # Is one category a kind of another, however many links lie between them?
    model = ATP(32).fit(cleaned.dag)
    special = ["folding oak tables", "tables", "folding oak tables"]
    general = ["tables", "folding oak tables", "vintage lamps"]
    print()
    for low, high, is_path in zip(special, general, model.predict(special, general), strict=True):
        print(f"{low} are {high}? {'yes' if is_path else 'no'}")

    # A category that is not in the catalog yet, placed by its links alone.
    source, _ = model.fold_in(out_edges=["oak tables", "garden tables"])
    above = np.flatnonzero(model.target_ @ source > model.threshold_)
    print(f"garden oak tables would be {', '.join(sorted(model.labels_[at] for at in above))}")


if __name__ == "__main__":
    main()
