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
    for section, item, value in Settings().items():
        if section != last:
            about = (type(getattr(Settings(), section)).__doc__ or "").strip()
            lines += ["", f"## [{section}]", "", about, "", "| setting | default | what |"]
            lines += ["|---|---|---|"]
            last = section
        shown = {True: "`true`", False: "`false`"}.get(value) if value in (True, False) else None
        if shown is None or not isinstance(value, bool):
            shown = f"`{value}`" if value not in ("", ()) else "–"
        secret = " Secret: better in the environment." if item.metadata["secret"] else ""
        lines.append(f"| `{item.name}` | {shown} | {item.metadata['help']}{secret} |")
    return "\n".join(lines).strip() + "\n"


if __name__ == "__main__":
    head, _, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    PAGE.write_text(f"{head}{MARK}\n\n{tables()}", encoding="utf-8")
