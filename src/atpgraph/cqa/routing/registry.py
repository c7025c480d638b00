"""Every row of the evaluation, by name."""

from __future__ import annotations

from collections.abc import Iterable

from atpgraph.cqa.routing.method import Method
from atpgraph.cqa.routing.popularity import (
    Chance,
    MeanVotes,
    NumberAccepted,
    NumberOfAnswers,
    RecentActivity,
)
from atpgraph.cqa.routing.rivals import ColdRoute, CqaRank
from atpgraph.cqa.routing.router import Router, RouterWithoutAtp
from atpgraph.cqa.routing.structural import AtpFold, AtpRow, Level, Qdee
from atpgraph.cqa.routing.textual import BagOfWords, Bm25, Paragraphs, TagExperts, Topics
from atpgraph.errors import InputError

METHODS: dict[str, type[Method]] = {
    method.name: method
    for method in (
        Router,
        RouterWithoutAtp,
        AtpRow,
        AtpFold,
        BagOfWords,
        Paragraphs,
        Topics,
        CqaRank,
        Qdee,
        ColdRoute,
        NumberOfAnswers,
        NumberAccepted,
        MeanVotes,
        RecentActivity,
        Level,
        Bm25,
        TagExperts,
        Chance,
    )
}


def method_names(names: Iterable[str] | None = None) -> list[str]:
    """Check names of methods; all of them for None or ``"all"``."""
    chosen = list(METHODS) if names is None else list(dict.fromkeys(names))
    if chosen == ["all"]:
        chosen = list(METHODS)
    unknown = [name for name in chosen if name not in METHODS]
    if unknown or not chosen:
        wrong = unknown[0] if unknown else ""
        raise InputError(f"There is no method {wrong!r}; there are {', '.join(METHODS)}.")
    return chosen
