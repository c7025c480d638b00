"""Write the tables of docs/reference/service.md from the settings themselves.

python tools/service_settings.py
"""

from __future__ import annotations

from pathlib import Path

from atpgraph_qa.service.settings import Settings

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "service.md"
MARK = "<!-- settings -->"


def tables() -> str:
    """One section for each section of the file."""
    lines: list[str] = []
    last = ""
    for item in Settings().items():
        if item.section != last:
            about = (type(getattr(Settings(), item.section)).__doc__ or "").strip()
            lines += ["", f"## [{item.section}]", "", about, "", "| setting | default | what |"]
            lines += ["|---|---|---|"]
            last = item.section
        value = ", ".join(item.value) if isinstance(item.value, tuple) else item.value
        shown = str(value).lower() if isinstance(value, bool) else str(value)
        secret = " Secret: better in the environment." if item.secret else ""
        default = f"`{shown}`" if shown else "–"
        lines.append(f"| `{item.name}` | {default} | {item.help}{secret} |")
    return "\n".join(lines).strip() + "\n"


if __name__ == "__main__":
    head, _, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    PAGE.write_text(f"{head}{MARK}\n\n{tables()}", encoding="utf-8")
