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

    sizes = demo.Sizes(users=60, questions=250, test=25, train=40)
    path = demo.main(tmp_path / "report.html", sizes)
    said = capsys.readouterr().out
    titles = re.findall(r"^\d\. (.*)$", said, re.MULTILINE)
    assert titles == [
        "Which imports close cycles?",
        "What does a module need?",
        "Two vectors for every node",
        "Which import is missing?",
        "Second part: a simulated community",
        "Who should answer?",
        "How good is that?",
    ]
    assert said.count("confidence") == 9  # three people for three questions
    assert "has just registered" in said
    assert str(path) in said.replace("\n", "")
    page = path.read_text(encoding="utf-8")
    assert all(title in page for title in titles)
    assert not re.search(r'(?:src|href)="(?!data:|#)', page)  # nothing is loaded from elsewhere
    assert "<script" not in page
    assert "router" in page
    assert page.count("<img ") == 2  # a hierarchy, and the vectors
    text = " ".join(said.split())
    assert re.search(r"json needs \d+ modules", text)
    assert "json → json.decoder → re → enum" in text
