"""The colors of reports, pictures and documentation, light and dark.

Text has a contrast of at least 4.5 : 1 (WCAG AA) on both backgrounds, marks in charts 3 : 1.
"""

from __future__ import annotations

from collections.abc import Mapping

N_COLORS = 8
N_STEPS = 5

LIGHT: Mapping[str, str] = {
    "paper": "#fdfdfc", "ink": "#1c2024", "quiet": "#5c636b", "line": "#d9dcdf",
    "wash": "#f1f2f3", "muted": "#868d95", "pale": "#e6eef9",
    "c0": "#2563b8", "c1": "#c2571a", "c2": "#2b8a57", "c3": "#8a4fb3", "c4": "#b3304f",
    "c5": "#7d7415", "c6": "#1c8494", "c7": "#7a5a45",
    # From low to high: for levels and other quantities.
    "s0": "#8a4fb3", "s1": "#4a5fc0", "s2": "#1c7f9c", "s3": "#2b8a57", "s4": "#8a8410",
}  # fmt: skip

DARK: Mapping[str, str] = {
    "paper": "#16181b", "ink": "#e6e8ea", "quiet": "#a3abb3", "line": "#34393f",
    "wash": "#202327", "muted": "#77808a", "pale": "#1d2b3f",
    "c0": "#6ea8f0", "c1": "#ef9a5d", "c2": "#62c794", "c3": "#c393e6", "c4": "#f07f9b",
    "c5": "#cdc25a", "c6": "#5fc3d1", "c7": "#c09d85",
    "s0": "#b07fd6", "s1": "#7f95ea", "s2": "#57b4d0", "s3": "#62c794", "s4": "#dcd35c",
}  # fmt: skip

# For pictures that have no dark side.
PAPER, INK, QUIET, LINE, WASH = (LIGHT[name] for name in ("paper", "ink", "quiet", "line", "wash"))
BLUE, ORANGE, GREEN, RED = (LIGHT[name] for name in ("c0", "c1", "c2", "c4"))
PALE_BLUE, MUTED = LIGHT["pale"], LIGHT["muted"]
STEPS = [LIGHT[f"s{step}"] for step in range(N_STEPS)]


def variables(theme: Mapping[str, str]) -> str:
    """Return a theme as CSS variables."""
    return " ".join(f"--{name}: {value};" for name, value in theme.items())
