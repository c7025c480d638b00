"""The demo in a terminal, as a picture: ``python docs/figures/terminal.py [FILE]``.

Runs ``examples/demo.py`` (about a minute) and draws the beginning of some of its parts, word for
word, into ``docs/images/demo.svg``. With a FILE it draws what an earlier run printed there.
"""

from __future__ import annotations

import re
import subprocess
import sys
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PARTS = {1: 17, 2: 5, 3: 8, 6: 14}  # the demo's parts that are shown, and how many lines of each
COLUMNS = 100
INK, QUIET, PAPER, BAR = "#e8e8e4", "#9aa4ad", "#16181b", "#2a2e33"
FONT = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
LETTER, LINE, LEFT, TOP = 7.8, 18.0, 18.0, 54.0  # pixels at a font size of 13


def printed() -> str:
    """What the demo prints where no terminal is."""
    demo = [sys.executable, str(ROOT / "examples" / "demo.py")]
    done = subprocess.run(demo, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    return done.stdout


def shown(text: str) -> list[str]:
    """The command, and the lines of the chosen parts; ⋮ where some are left out."""
    parts = re.split(r"(?m)^(?=\d+\. )", text)[1:]
    lines = ["$ make demo", ""]
    for number, most in PARTS.items():
        part = [line.rstrip() for line in parts[number - 1].splitlines()]
        lines += part[:most]
        if number < len(parts) or most < len(part):
            lines += ["", "⋮", ""]
    return [line for line, after in zip(lines, [*lines[1:], ""], strict=True) if line or after]


def draw(lines: list[str]) -> str:
    """A window with the lines in it."""
    width, height = 2 * LEFT + LETTER * COLUMNS, TOP + LINE * len(lines)
    parts = [
        f'<rect width="{width:g}" height="{height:g}" rx="10" fill="{PAPER}"/>',
        f'<path d="M0 32V10A10 10 0 0 1 10 0H{width - 10:g}a10 10 0 0 1 10 10V32z" fill="{BAR}"/>',
        *(
            f'<circle cx="{20 + 20 * at}" cy="16" r="6" fill="{color}"/>'
            for at, color in enumerate(("#ec6a5e", "#f4bf4f", "#61c554"))
        ),
    ]
    for row, line in enumerate(lines):
        if not line:
            continue
        heading = re.match(r"\d+\. |\$ ", line)
        color = QUIET if set(line) <= set(" ─⋮") else INK
        weight = ' font-weight="700"' if heading else ""
        # The length keeps columns in line whatever font stands in for the first.
        start = len(line) - len(line.lstrip())
        x, y = LEFT + LETTER * start, TOP + LINE * row
        length = LETTER * len(line.strip())
        parts.append(
            f'<text x="{x:g}" y="{y:g}" textLength="{length:g}" fill="{color}"{weight}>'
            f"{escape(line.strip()).replace(' ', chr(0xA0))}</text>"  # plain blanks would collapse
        )
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" role="img" font-family="{FONT}" font-size="13">\n'
        f"<title>make demo in a terminal</title>\n{body}\n</svg>\n"
    )


def main() -> None:
    """Run the demo, or read what it printed, and draw."""
    text = Path(sys.argv[1]).read_text(encoding="utf-8") if len(sys.argv) > 1 else printed()
    file = ROOT / "docs" / "images" / "demo.svg"
    file.write_text(draw(shown(text)), encoding="utf-8")
    print(file)


if __name__ == "__main__":
    main()
