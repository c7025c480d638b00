"""The documentation is in step with the code, complete, and builds."""

from __future__ import annotations

import importlib.util
import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

import atpgraph
from tests.report.browser import browser, find_chromium

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
    assert "atp qa route" in commands
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
        pkgutil.resolve_name(name)


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
    by_hand = {"favicon.svg", "demo.svg"}  # the second is drawn by terminal.py, after a long run
    assert set(made) | plots == set(kept) - by_hand
    for name, drawn in made.items():
        ElementTree.fromstring(drawn)
        if name == "pipeline.svg" or name in plots:
            continue  # new files may wait for the next map; versions of Matplotlib differ
        assert kept[name] == drawn, f"{name} is behind the code: python docs/figures/make.py"


def test_the_map_of_the_code_has_every_folder() -> None:
    drawn = (IMAGES / "pipeline.svg").read_text("utf-8")
    for folder in (ROOT / "src" / "atpgraph").iterdir():
        if folder.is_dir() and folder.name not in {"__pycache__", "util"}:
            assert f">{folder.name}/<" in drawn, "add it to docs/figures/pipeline.py, draw again"


def test_every_example_is_on_the_page_that_runs_them() -> None:
    text = (DOCS / "tutorials" / "examples.md").read_text("utf-8")
    shown = re.findall(r"^--8<--\nexamples/(.+)\n--8<--$", text, re.MULTILINE)
    there = {path.name for path in ROOT.glob("examples/*.py")}
    assert sorted([*shown, "demo.py"]) == sorted(there)  # the demo has a test of its own
    for name in shown:
        assert len((ROOT / "examples" / name).read_text("utf-8").splitlines()) <= 80


def test_every_benchmark_has_its_line() -> None:
    text = (ROOT / "benchmarks" / "README.md").read_text("utf-8")
    listed = re.findall(r"^\| `(\w+\.py)", text, re.MULTILINE)
    scripts = {path.name for path in ROOT.glob("benchmarks/[a-z]*.py")}
    assert sorted(listed) == sorted(scripts)


GENERATED = ("docs/reference/cli.md", "docs/reference/json.md")  # by docs/tools, in the site only


def test_links_in_the_repository_lead_somewhere() -> None:
    pages = [*ROOT.glob("*.md"), *ROOT.glob("benchmarks/*.md"), *DOCS.glob("**/*.md")]
    for page in pages:
        for link in re.findall(r"\]\(([^)#\s]+)", page.read_text("utf-8")):
            target = page.parent / link
            if "://" not in link and target.resolve() not in [ROOT / name for name in GENERATED]:
                assert target.exists(), f"{page.relative_to(ROOT)} links to {link}"


def test_files_that_comments_name_are_there() -> None:
    named = re.compile(r"\b(?:qa/)?(?:docs|benchmarks|tests|examples)/[\w/-]+\.(?:md|py)\b")
    sources = [*ROOT.glob("src/**/*.py"), *ROOT.glob("qa/src/**/*.py")]
    for path in [*sources, *ROOT.glob("benchmarks/*.py"), ROOT / "Makefile"]:
        for name in named.findall(path.read_text("utf-8")):
            assert (ROOT / name).exists(), f"{path.relative_to(ROOT)} names {name}"


def test_citation_has_the_version() -> None:
    text = (ROOT / "CITATION.cff").read_text("utf-8")
    assert f"\nversion: {atpgraph.__version__}\n" in text


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built with warnings as errors."""
    for module in ("mkdocs", "material", "mkdocstrings", "mkdocstrings_handlers"):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed: pip install '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_the_site_loads_nothing_from_elsewhere(site: Path) -> None:
    pages = list(site.glob("**/*.html"))
    assert len(pages) > 20
    loads = re.compile(
        r'<(?:script|img|iframe)[^>]*\ssrc="(?:https?:)?//'
        r'|<link[^>]*rel="(?:stylesheet|preconnect|icon)"[^>]*href="(?:https?:)?//'
    )
    for page in pages:
        assert not loads.search(page.read_text("utf-8")), page


def test_signatures_have_types_and_names_are_links(site: Path) -> None:
    page = (site / "reference" / "atp.html").read_text("utf-8")
    signature = re.search(r'<div class="doc-signature.*?</div>', page, re.DOTALL)
    assert signature is not None
    text = re.sub(r"<[^>]+>", "", signature[0])
    assert "n_components: int = 128" in text
    assert 'digraph.html#atpgraph.util.random.RandomState">RandomState</a>' in signature[0]
    for name in ("fold_in", "add_edges", "transform", "reaches", "set_params"):
        assert f'id="atpgraph.embedding.estimator.ATP.{name}"' in page
    pictures = (site / "reference" / "plot.html").read_text("utf-8")
    assert 'href="atp.html#atpgraph.embedding.estimator.ATP"' in pictures
    for path in (site / "reference").glob("*.html"):
        assert not re.search(r":(func|class|meth|mod|data|attr):|&lt;autoref", path.read_text()), (
            path
        )


def test_sections_of_the_menu_are_folders() -> None:
    menu = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:")[2]
    section = ""
    for title, page in re.findall(r"^ +- (.+?):(?: (\S+))?$", menu, re.MULTILINE):
        if not page:
            section = title.lower().replace(" ", "-")
        elif section != "project":  # its pages are beside docs/
            assert page.rpartition("/")[0] == section, f"{page} is listed under {title}"


def test_the_site_can_be_read_by_programs(site: Path) -> None:
    assert (site / "objects.inv").stat().st_size > 1000
    assert "- [Grow a model](how-to/grow.html)" in (site / "llms.txt").read_text("utf-8")


def test_the_menu_has_no_page_twice(site: Path) -> None:
    links = re.findall(r'<a href="([^"#]+)" class="md-nav__link', (site / "index.html").read_text())
    assert "evidence/routing.html" in links
    assert len(links) <= 35
    assert len(links) == len(set(links))


SEARCH = """new Promise((resolve, reject) => {
  setTimeout(() => reject(new Error("nothing found in 30 s")), 30000);
  const list = document.querySelector(".md-search-result__list");
  const look = () => {
    const links = [...list.querySelectorAll("a.md-search-result__link")].map(a => a.href);
    if (links.length) resolve(links);
  };
  new MutationObserver(look).observe(list, {childList: true, subtree: true});
  const field = document.querySelector(".md-search__input");
  field.focus();
  field.value = "memory budget";
  field.dispatchEvent(new Event("keyup"));
})"""


@pytest.mark.skipif(find_chromium() is None, reason="Chromium is not installed")
def test_search_works_in_pages_opened_from_disk(site: Path, tmp_path: Path) -> None:
    with browser(tmp_path / "profile") as window:
        for page in ("index.html", "how-to/kernels.html"):
            window.open((site / page).as_uri(), 1400, "light")
            links = window.evaluate(SEARCH)
            assert any("large-graphs.html" in link for link in links)
