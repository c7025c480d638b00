"""A color for each method, the same in every panel of a report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from atpgraph.util.palette import N_COLORS


def method_colors(rankings: Iterable[Sequence[str]], most: int = N_COLORS) -> dict[str, int]:
    """Color numbers of the methods that stand highest in any of the rankings.

    Parameters
    ----------
    rankings : iterable of sequences of names
        The methods of each panel, best first.
    most : int
        Limit on the colors; methods without one are drawn in grey.

    Examples
    --------
    >>> method_colors([["atp", "line"], ["nrp", "atp"]], most=2)
    {'atp': 0, 'nrp': 1}
    """
    places: dict[str, list[int]] = {}
    for ranking in rankings:
        for place, name in enumerate(ranking):
            places.setdefault(name, []).append(place)
    ordered = sorted(
        places, key=lambda name: (min(places[name]), -len(places[name]), sum(places[name]))
    )
    return {name: color for color, name in enumerate(ordered[: min(most, N_COLORS)])}
