"""Who gets a colour."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from atpgraph.report.method_colours import method_colours
from atpgraph.util.palette import N_COLOURS

names = st.permutations([f"m{i}" for i in range(12)])


@given(st.lists(names, min_size=1, max_size=5), st.integers(1, 20))
def test_colours_are_distinct_and_go_to_the_best(rankings: list[list[str]], most: int) -> None:
    colours = method_colours(rankings, most)
    assert sorted(colours.values()) == list(range(len(colours)))
    assert len(colours) == min(most, N_COLOURS)
    if len(rankings) <= len(colours):
        assert {ranking[0] for ranking in rankings} <= set(colours)
