"""The documentation is in step with the code, complete, and builds."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import atpgraph

ROOT = Path(__file__).resolve().parent.parent.parent
DOCS = ROOT / "docs"
IMAGES = DOCS / "images"
ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT / "src"), "NO_MKDOCS_2_WARNING": "1"}


@pytest.fixture
def cli_reference(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(DOCS / "tools"))
    import cli_reference

    yield cli_reference
    sys.modules.pop("cli_reference", None)


def test_cli_reference_has_every_command_and_option(cli_reference) -> None:
    sections = {
        part.partition("`\n")[0]: part
        for part in re.split(r"(?m)^#+ `(?=atp )", cli_reference.render())[1:]
    }
    commands = dict(cli_reference.walk(cli_reference.command_tree()))
    del commands["atp"]
    assert set(sections) == set(commands)
    assert "atp embed" in commands
    assert "atp cqa route" in commands
    for path, command in commands.items():
        for item in command.params:
            if item.param_type_name == "option" and item.name != "help" and not item.hidden:
                for flag in item.opts:
                    assert f"`{flag}`" in sections[path], f"{path} {flag}"
                assert item.help, f"{path} {item.opts} has no help"


def test_api_reference_has_every_public_name() -> None:
    text = "\n".join(path.read_text("utf-8") for path in (DOCS / "reference").glob("*.md"))
    listed = set(re.findall(r"\w+", text))
    whole = "::: atpgraph.errors\n" in text  # a module with all its members
    errors = {"AtpError", "BudgetError", "InputError"} if whole else set()
    assert set(atpgraph.__all__) <= listed | errors
    for name in re.findall(r"^::: (\S+)", text, re.MULTILINE):
        module, _, member = name.rpartition(".")
        assert hasattr(importlib.import_module(module), member), name


def test_figures_are_those_the_script_draws(tmp_path: Path) -> None:
    script = DOCS / "figures" / "make.py"
    done = subprocess.run(
        [sys.executable, script, "--output", tmp_path],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    made = {path.name: path.read_text("utf-8") for path in tmp_path.glob("*.svg")}
    kept = {path.name: path.read_text("utf-8") for path in IMAGES.glob("*.svg")}
    plots = {name for name in kept if name.startswith("plot-")}  # need Matplotlib
    assert set(made) | plots == set(kept) - {"favicon.svg"}
    for name, drawn in made.items():
        ElementTree.fromstring(drawn)
        if name == "pipeline.svg" or name in plots:
            continue  # new files may wait for the next map; versions of Matplotlib differ
        assert kept[name] == drawn, f"{name} is behind the code: python docs/figures/make.py"


def test_the_map_of_the_code_has_every_folder() -> None:
    drawn = (IMAGES / "pipeline.svg").read_text("utf-8")
    for folder in (ROOT / "src" / "atpgraph").iterdir():
        if folder.is_dir() and folder.name != "__pycache__":
            assert f">{folder.name}/<" in drawn, "add it to docs/figures/pipeline.py, draw again"


def test_links_in_the_repository_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *DOCS.glob("**/*.md")]
    for page in pages:
        for link in re.findall(r"\]\(([^)#\s]+)", page.read_text("utf-8")):
            if "://" not in link:
                assert (page.parent / link).exists(), f"{page.relative_to(ROOT)} links to {link}"


def test_citation_has_the_version() -> None:
    text = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {atpgraph.__version__}\n" in text


def test_the_site_builds_without_warnings_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    for module in ("mkdocs", "material", "mkdocstrings", "mkdocstrings_handlers"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed: pip install '.[docs]'")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"],
        cwd=ROOT,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    pages = list((tmp_path / "site").glob("**/*.html"))
    assert len(pages) > 20
    loads = re.compile(
        r'<(?:script|img|iframe)[^>]*\ssrc="(?:https?:)?//'
        r'|<link[^>]*rel="(?:stylesheet|preconnect|icon)"[^>]*href="(?:https?:)?//'
    )
    for page in pages:
        assert not loads.search(page.read_text("utf-8")), page
