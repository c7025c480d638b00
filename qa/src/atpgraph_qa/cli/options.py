"""Options that several commands of ``atp cqa`` share, and what they are turned into."""

from __future__ import annotations

import datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from atpgraph_qa.advisor.policies import Policy


class EgaMode(StrEnum):
    """How questions of one asker are linked."""

    none = "none"
    consecutive = "consecutive"
    all_pairs = "all-pairs"


SitePath = Annotated[Path, typer.Argument(help="Folder made by 'atp cqa ingest'.")]
SiteOrModel = Annotated[
    Path, typer.Argument(metavar="SITE|MODEL", help="A site, or a model of 'atp cqa train'.")
]
Tau = Annotated[float, typer.Option("--tau", help="Days between questions for all-pairs.")]
TestShare = Annotated[
    float, typer.Option("--test-share", help="Share of the questions, the last, to test on.")
]
Text = Annotated[
    str,
    typer.Option(
        "--text",
        metavar="bm25|static|dense|PATH|auto",
        help="What tells what questions are about: words, vectors of the extra 'dense', or a "
        "folder with an ONNX file and tokenizer.json; auto takes the best that is installed.",
    ),
]
Report = Annotated[Path | None, typer.Option("--report", help="Write index.html into this folder.")]


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
