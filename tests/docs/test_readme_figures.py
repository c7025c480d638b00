"""The figures in the README's evidence table are those of the pages that it links to."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
NUMBER = re.compile(r"(?<![\w.])(?:\d{1,3}(?:,\d{3})+|\d*\.?\d+)(?!\w)")
LINK = re.compile(r"\]\(([^)#]+)[^)]*\)")


def rows() -> list[str]:
    """The rows of the table."""
    text = (ROOT / "README.md").read_text("utf-8").partition("## Evidence")[2].partition("\n## ")[0]
    return [line for line in text.splitlines() if line.startswith("|")][2:]


def numbers(text: str) -> list[str]:
    """All numbers, without those in links and brackets."""
    text = re.sub(r"\([^)]*\)", "", LINK.sub("]", text))
    return [each.replace(",", "") for each in NUMBER.findall(text)]


def test_every_figure_is_on_a_page_that_it_links_to() -> None:
    pages: list[Path] = []
    checked = 0
    for row in rows():
        _, question, data, *cells = row.split("|")
        if question.strip() != "the same":
            pages = []
        pages += [ROOT / link for link in LINK.findall(row)]
        known = [float(each) for page in pages for each in numbers(page.read_text("utf-8"))]
        for figure in numbers("|".join(cells)):
            digits = len(figure.partition(".")[2])
            same = [each for each in known if round(each, digits) == float(figure)]
            assert same, f"{figure} ({question.strip()}, {data.strip()}) is not in {pages}"
            checked += 1
    assert checked > 15
