"""What ``mkdocs build`` does beside the pages in ``docs/``.

- The CLI reference is made from the commands themselves (``cli_reference.py``), the page of JSON
  outputs from their schemas (``json_reference.py``).
- Measurements, benchmark scripts, examples, the changelog and the contributing guide live outside
  ``docs/``, where readers of the repository look for them; they are put into the site from there.
- Links are written so that they work in the repository. A link that leaves ``docs/`` loses the
  step that leaves it.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

TOOLS = Path(__file__).resolve().parent
ROOT = TOOLS.parent.parent
sys.path.insert(0, str(TOOLS))

import cli_reference  # noqa: E402  (a neighbor of this file, not an installed module)
import json_reference  # noqa: E402

CLI_PAGE = "reference/cli.md"
JSON_PAGE = "reference/json.md"
TOP_PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages and the files from outside ``docs/``."""
    files.append(File.generated(config, CLI_PAGE, content=cli_reference.render()))
    files.append(File.generated(config, JSON_PAGE, content=json_reference.render()))
    outside = [ROOT / name for name in TOP_PAGES]
    outside += sorted((ROOT / "benchmarks").glob("*.py")) + sorted((ROOT / "examples").glob("*.py"))
    outside.append(ROOT / "benchmarks" / "README.md")
    outside += sorted((ROOT / "benchmarks" / "results").iterdir())
    for path in outside:
        if path.name.startswith("_") or not path.exists():
            continue
        uri = path.relative_to(ROOT).as_posix()
        files.append(File.generated(config, uri, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    """Make links between ``docs/`` and the rest of the repository work in the site."""
    uri = page.file.src_uri
    if uri in TOP_PAGES or uri.startswith("benchmarks/"):  # beside docs/ in the repository
        return re.sub(r"(\]\(|src=\")((?:\.\./)*)docs/", r"\1\2", markdown)
    depth = uri.count("/")
    leaving = "../" * (depth + 1)
    return markdown.replace(f"]({leaving}", f"]({leaving[3:]}")


def on_post_build(config: Any) -> None:
    """Write ``llms.txt``: the pages of the menu and what they are about, for programs that read."""
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", ""]
    for section in config.nav:
        for title, inside in section.items():
            pages = [{title: inside}] if isinstance(inside, str) else inside
            lines += [] if isinstance(inside, str) else ["", f"## {title}", ""]
            for page in pages:
                for name, path in page.items():
                    lines.append(f"- [{name}]({Path(path).with_suffix('.html').as_posix()})")
    Path(config.site_dir, "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
