"""Every code block of the README and of the documentation runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.blocks import RUN, SHOWN, Runner, blocks, same

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = [
    path.relative_to(ROOT).as_posix()
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
]
MOST_NOT_RUN = 12  # in all pages together: leaving out is the exception


@pytest.mark.parametrize("page", PAGES)
def test_page(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    runner = Runner(tmp_path)
    left_out: list[str] = []
    for block in blocks(ROOT / page, page):
        if block.missing:
            left_out.append(f"{block.place} needs {block.missing}")
        elif block.runs:
            runner.run(block)
    if left_out:
        pytest.skip(f"the rest of the page runs, but {', '.join(left_out)}")


def test_every_block_is_run_or_says_why_not() -> None:
    found = [block for page in PAGES for block in blocks(ROOT / page, page)]
    unknown = [f"{b.place} ({b.language})" for b in found if b.language not in (*RUN, *SHOWN)]
    assert not unknown, f"blocks are {', '.join(RUN)}, or {', '.join(SHOWN)} to be read only"
    indented = [page for page in PAGES if "\n\n    atp " in (ROOT / page).read_text("utf-8")]
    assert not indented, "indented blocks are not run; fence them"
    not_run = [block for block in found if block.mark == "not run"]
    assert all(len(block.told.split()) >= 3 for block in not_run), "say why a block is not run"
    assert len(not_run) <= MOST_NOT_RUN


def test_a_wrong_output_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    page = tmp_path / "page.md"
    text = "```python\nprint(6 * 7)\n```\n\n```output\n{}\n```\n"
    text += "\n<!-- exits 2 -->\n```bash\natp x\n```\n"
    page.write_text(text.format("42"))
    for block in blocks(page, "page.md"):
        Runner(tmp_path).run(block)
    page.write_text(text.format("41"))
    with pytest.raises(AssertionError, match="prints"):
        Runner(tmp_path).run(blocks(page, "page.md")[0])
    page.write_text("```bash\natp x\n```\n")
    with pytest.raises(AssertionError, match="exits with 2, not 0"):
        Runner(tmp_path).run(blocks(page, "page.md")[0])


def test_comparison_of_output() -> None:
    assert same("a  1.234\n", "a 1.236")
    assert not same("a  1.234", "a 1.5")
    assert same("row 0.5 ±0.02 ...", "row 0.5 ±0.02 1.7")
    assert not same("row 0.5 ±0.02 ...", "row 0.7 ±0.02 1.7")
    assert not same("3 nodes", "4 nodes")
    assert same("first\n...\nlast", "first\n1\n2\nlast")
    assert not same("first\n...\nlast", "first\n1\n2")
