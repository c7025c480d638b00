"""Who gets a color."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from atpgraph.report.method_colors import method_colors
from atpgraph.util.palette import N_COLORS

names = st.permutations([f"m{i}" for i in range(12)])


@given(st.lists(names, min_size=1, max_size=5), st.integers(1, 20))
def test_colors_are_distinct_and_go_to_the_best(rankings: list[list[str]], most: int) -> None:
    colors = method_colors(rankings, most)
    assert sorted(colors.values()) == list(range(len(colors)))
    assert len(colors) == min(most, N_COLORS)
    if len(rankings) <= len(colors):
        assert {ranking[0] for ranking in rankings} <= set(colors)
