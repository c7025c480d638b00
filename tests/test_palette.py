"""Contrast of the colors, as the WCAG define it."""

from __future__ import annotations

import pytest

from atpgraph.util.palette import DARK, LIGHT, N_COLORS, N_STEPS


def luminance(color: str) -> float:
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def test_contrast_of_known_pairs() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("background", ["paper", "wash"])
@pytest.mark.parametrize("text", ["ink", "quiet"])
def test_text(theme, background, text) -> None:
    assert contrast(theme[text], theme[background]) >= 4.5


@pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])
def test_marks_stand_out_from_the_paper(theme) -> None:
    marks = [f"c{i}" for i in range(N_COLORS)] + [f"s{i}" for i in range(N_STEPS)] + ["muted"]
    weakest = min(marks, key=lambda name: contrast(theme[name], theme["paper"]))
    assert contrast(theme[weakest], theme["paper"]) >= 3, weakest


def test_both_themes_have_the_same_names() -> None:
    assert set(LIGHT) == set(DARK)
