"""Every promise of SECURITY.md names tests, and those tests exist."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`(tests/[\w/.]+)(?:::(\w+))?`")


def test_every_test_it_names_is_there() -> None:
    named = NAMED.findall(PAGE)
    assert len(named) > 20
    for file, name in named:
        path = ROOT / file
        assert list(path.glob("test_*.py")) if path.is_dir() else path.is_file(), file
        if name:
            assert f"\ndef {name}(" in path.read_text(encoding="utf-8"), f"{file}::{name}"


def test_every_promise_names_a_test() -> None:
    hostile = PAGE.partition("## Untrusted input")[2].partition("\n## ")[0]
    promises = hostile.split("\n- **")[1:]
    assert len(promises) > 8
    for promise in promises:
        assert NAMED.search(promise), promise
