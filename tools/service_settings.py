"""Write the tables of docs/reference/service.md from the settings themselves.

python tools/service_settings.py
"""

from __future__ import annotations

from pathlib import Path

from atpgraph_qa.service.settings import Settings, is_secret

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reference" / "service.md"
MARK = "<!-- settings -->"


def tables() -> str:
    """One section for each section of the file."""
    lines: list[str] = []
    last = ""
    for section, name, about, value in Settings().items():
        if section != last:
            title = (type(getattr(Settings(), section)).__doc__ or "").strip()
            lines += ["", f"## [{section}]", "", title, "", "| setting | default | meaning |"]
            lines += ["|---|---|---|"]
            last = section
        plain = ", ".join(value) if isinstance(value, tuple) else value
        shown = str(plain).lower() if isinstance(plain, bool) else str(plain)
        secret = " This is a secret; set it in the environment." if is_secret(about) else ""
        default = f"`{shown}`" if shown else "–"
        lines.append(f"| `{name}` | {default} | {about.description}{secret} |")
    return "\n".join(lines).strip() + "\n"


if __name__ == "__main__":
    head, _, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    PAGE.write_text(f"{head}{MARK}\n\n{tables()}", encoding="utf-8")
