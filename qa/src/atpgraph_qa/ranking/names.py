"""Names of the features, in the order in which weights are kept."""

from __future__ import annotations

POPULARITY = (
    "answers", "accepted", "acceptance_rate", "win_rate", "mean_votes", "vote_wins", "elo",
)  # fmt: skip
RECENCY = (
    "days_since", "fading_3", "fading_15", "fading_60", "fading_365", "accepted_60", "accepted_365",
)  # fmt: skip
HABIT = ("hour", "speed", "first", "tenure", "asked")
TEXT = ("text_sum", "text_max", "text_near", "text_recent", "text_accepted", "text_mean")
MEANING = (
    "meaning_sum", "meaning_max", "meaning_accepted", "meaning_recent", "meaning_share",
    "meaning_month", "meaning_days", "meaning_month_share", "meaning_mean", "meaning_asked",
    "meaning_asked_max",
)  # fmt: skip
AXES = tuple(f"axis_{k:02}" for k in range(24))
TAGS = ("tag_sum", "tag_accepted", "tag_share", "tag_recent", "tag_same")
# What counts otherwise for people with few answers: the same feature, once more for them alone.
FEW_OF = (
    "days_since", "fading_15", "tenure", "text_max", "meaning_max", "meaning_month",
    "meaning_asked_max",
)  # fmt: skip
FEW_MOST = (10, 3)
FEW = tuple(f"few{most}{end}" for most in FEW_MOST for end in ("", *(f"_{n}" for n in FEW_OF)))
ASKER = ("helped_asker", "accepted_by_asker")
GROUPS = {
    "popularity": POPULARITY, "recency": RECENCY, "habit": HABIT, "text": TEXT,
    "meaning": MEANING, "axes": AXES, "tags": TAGS, "few": FEW, "asker": ASKER,
}  # fmt: skip
NAMES = tuple(name for group in GROUPS.values() for name in group)
# Many features of one kind may each move less: by how much more than others they cost.
STIFF = dict.fromkeys(AXES, 3.0)


def names_of(groups: tuple[str, ...]) -> set[str]:
    """Return the names of the features of some groups."""
    return {name for group in groups for name in GROUPS[group]}
