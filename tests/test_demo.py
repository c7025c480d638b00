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

    sizes = {"nodes": 200, "users": 60, "questions": 250, "test": 25, "train": 40}
    options = [part for name, value in sizes.items() for part in (f"--{name}", str(value))]
    path = demo.main([*options, "--output", str(tmp_path / "report.html")])
    said = capsys.readouterr().out
    titles = re.findall(r"^\d\. (.*)$", said, re.MULTILINE)
    assert titles == [
        "Breaking cycles",
        "The embedding",
        "A community",
        "Difficulty of questions, expertise of people",
        "Who should answer?",
        "How good is it?",
    ]
    assert said.count("confidence") == 9  # three people for three questions
    assert "registered a moment ago" in said
    assert str(path) in said.replace("\n", "")
    page = path.read_text(encoding="utf-8")
    assert all(title in page for title in titles)
    assert not re.search(r'(?:src|href)="(?!data:|#)', page)  # nothing is loaded from elsewhere
    assert "<script" not in page
    for row in ("router", "atp-position", "h-voting", "no policy"):
        assert row in page
