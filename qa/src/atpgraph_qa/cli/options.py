"""Options that several commands of ``atp qa`` share, and how they are parsed."""

from __future__ import annotations

import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from atpgraph.cli.options import arg, opt

if TYPE_CHECKING:
    from atpgraph_qa.advisor.policies import Policy


class EgaMode(StrEnum):
    """How questions of one asker are linked."""

    none = "none"
    consecutive = "consecutive"
    all_pairs = "all-pairs"


SitePath = Annotated[Path, arg("Folder made by 'atp qa ingest'.")]
SiteOrModel = Annotated[Path, arg("A site, or a model of 'atp qa train'.", metavar="SITE|MODEL")]
Tau = Annotated[float, opt("Days between questions for all-pairs.")]
TestShare = Annotated[float, opt("Share of the questions, the last, to test on.")]
Text = Annotated[
    str,
    opt(
        "How questions are compared: by words (bm25), by vectors of the extra 'dense', or by a "
        "folder with an ONNX file and tokenizer.json; auto takes the best that is installed.",
        metavar="bm25|static|dense|PATH|auto",
    ),
]


def names(text: str) -> list[str]:
    """Names separated by commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def milliseconds(moment: datetime.datetime | None) -> int | None:
    """A moment given without a time zone, as UTC."""
    if moment is None:
        return None
    return int(moment.replace(tzinfo=datetime.UTC).timestamp() * 1000)


def policy(
    opt_out: str = "",
    inactive_days: float | None = None,
    per_day: int | None = None,
    per_week: int | None = None,
    spread: float = 0.0,
    newcomers: float = 0.0,
) -> Policy:
    """The rules that a command was given."""
    import numpy as np

    from atpgraph.errors import InputError
    from atpgraph_qa.advisor.policies import Policy

    try:
        never = frozenset(int(number) for number in names(opt_out))
        np.array(list(never), dtype=np.int64)
    except (ValueError, OverflowError):
        raise InputError(f"--opt-out takes user ids, not {opt_out!r}.") from None
    return Policy(never, inactive_days, per_day, per_week, spread, newcomers)
