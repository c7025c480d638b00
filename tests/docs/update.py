"""Write the real output into the output blocks of pages that say something else.

    python -m tests.docs.update docs/index.md docs/how-to/*.md

Empty output blocks are filled. One with ``...`` in it is left as it is and named, because somebody
has to say which parts vary. Read what changed before you commit it.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path

from tests.docs.blocks import Runner, blocks, same


def update(path: Path) -> None:
    """Run a page and correct it."""
    page = path.resolve()
    lines = page.read_text(encoding="utf-8").splitlines()
    right: list[tuple[int, list[str]]] = []
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        runner = Runner(Path(folder))
        for block in blocks(page, str(path)):
            if block.missing or not block.runs:
                continue
            printed = runner.python(block) if block.language == "python" else runner.bash(block)
            if block.output is None or same(block.output, printed):
                continue
            if "..." in block.output:
                print(f"{block.place}: look at its output, it has '...'\n{printed}")
            else:
                found = [line.rstrip() for line in printed.splitlines()]
                right.append((block.line, "\n".join(found).strip("\n").splitlines()))
    for line, found in reversed(right):
        start = next(at for at in range(line, len(lines)) if lines[at].strip() == "```output")
        end = next(at for at in range(start + 1, len(lines)) if lines[at].strip() == "```")
        lines[start + 1 : end] = found
        print(f"{path}:{start + 1}: corrected")
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        update(Path(name))
