"""A colour for each method, the same in every panel of a report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from atpgraph.util.palette import N_COLOURS


def method_colours(rankings: Iterable[Sequence[str]], most: int = N_COLOURS) -> dict[str, int]:
    """Colour numbers of the methods that stand highest in any of the rankings.

    Parameters
    ----------
    rankings : iterable of sequences of names
        The methods of each panel, best first.
    most : int
        Limit on the colours; methods without one are drawn in grey.

    Examples
    --------
    >>> method_colours([["atp", "line"], ["nrp", "atp"]], most=2)
    {'atp': 0, 'nrp': 1}
    """
    places: dict[str, list[int]] = {}
    for ranking in rankings:
        for place, name in enumerate(ranking):
            places.setdefault(name, []).append(place)
    ordered = sorted(
        places, key=lambda name: (min(places[name]), -len(places[name]), sum(places[name]))
    )
    return {name: colour for colour, name in enumerate(ordered[: min(most, N_COLOURS)])}
