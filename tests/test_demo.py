"""The demo runs from end to end, at a small size."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"


def test_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.delitem(sys.modules, "demo", raising=False)
    import demo

    sizes = demo.Sizes(nodes=200, users=60, questions=250, test=25, train=40)
    path = demo.main(tmp_path / "report.html", sizes)
    said = capsys.readouterr().out
    titles = re.findall(r"^\d\. (.*)$", said, re.MULTILINE)
    assert titles == [
        "Mistakes in a hierarchy",
        "A vector for where you come from, a vector for where you can go",
        "A community",
        "How hard is a question, how expert is a person?",
        "Who should answer?",
        "How good is that?",
    ]
    assert said.count("confidence") == 9  # three people for three questions
    assert "registered a moment ago" in said
    assert str(path) in said.replace("\n", "")
    page = path.read_text(encoding="utf-8")
    assert all(title in page for title in titles)
    assert not re.search(r'(?:src|href)="(?!data:|#)', page)  # nothing is loaded from elsewhere
    assert "<script" not in page
    for row in ("router", "atp-position", "h-voting"):
        assert row in page
    assert page.count('class="dots"') >= 4  # two maps, two comparisons with what was planted
    text = " ".join(said.split())
    assert "removes snake → seeds, hawk → grasshopper, wolf → leaves;" in text
    # The number of levels that is told is the one that the map shows.
    told = re.search(r"large graph stands on (\d+) levels", text)
    assert told is not None
    shown = [int(last) for last in re.findall(r"levels? (?:\d+ – )?(\d+)</li>", page)]
    assert max(shown) == int(told[1])
