"""What the package says about itself."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.resources import files
from pathlib import Path

import pytest

import atpgraph
import atpgraph_qa

ROOT = Path(__file__).resolve().parent.parent
CORE, QA = (
    tomllib.loads((ROOT / folder / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for folder in (".", "qa")
)
EXTRAS = {*CORE["optional-dependencies"], *QA["optional-dependencies"]}


def lowest(*extras: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools" / "lowest.py"), *extras]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def bounds(*extras: str) -> dict[str, str]:
    done = lowest(*extras)
    assert done.returncode == 0, done.stderr
    return dict(line.split("==") for line in done.stdout.splitlines())


def minor_versions() -> list[str]:
    """Python versions that the package says it supports, such as 3.11."""
    prefix = "Programming Language :: Python :: 3."
    return [item.split(" :: ")[-1] for item in CORE["classifiers"] if item.startswith(prefix)]


def test_every_dependency_has_a_lower_bound_that_is_met_here() -> None:
    found = bounds(*EXTRAS)
    assert {"numpy", "scipy", "numba", "typer", "rich"} <= set(found)
    for name, bound in found.items():
        try:
            installed = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        assert numbers(installed) >= numbers(bound), name


def test_one_bound_per_dependency() -> None:
    """Extras that share a library agree on its oldest version."""
    done = lowest(*EXTRAS)
    names = [line.split("==")[0] for line in done.stdout.splitlines()]
    assert sorted(names) == sorted(set(names))


def test_messages_about_missing_libraries_name_extras_that_exist() -> None:
    for folder, project in (("src", CORE), ("qa/src", QA)):
        code = "\n".join(p.read_text(encoding="utf-8") for p in (ROOT / folder).rglob("*.py"))
        named = set(re.findall(r'MissingDependencyError\(\s*[\w"-]+,\s*"(\w+)"', code))
        assert named
        assert named <= set(project["optional-dependencies"])


TARGETS = ("demo", "test", "docs", "bench", "dist")


@pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")
@pytest.mark.parametrize("target", TARGETS)
def test_a_target_installs_what_it_needs_after_all_others(target: str, tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    for other in set(TARGETS) - {target}:
        (tmp_path / f".installed-{other}").touch()
    command = ["make", "--dry-run", f"VENV={tmp_path}", target]
    environment = {name: value for name, value in os.environ.items() if name[:4] != "MAKE"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(re.findall("pip .*install ", done.stdout)) == 1
    touched = re.findall("^touch (.*)", done.stdout, re.MULTILINE)
    assert touched == [f"{tmp_path}/.installed-{target}"]


@pytest.mark.parametrize("version", minor_versions())
def test_what_make_installs_is_pinned_within_the_bounds(version: str) -> None:
    file = ROOT / "requirements" / f"py{version.replace('.', '')}.txt"
    lines = file.read_text(encoding="utf-8").splitlines()
    assert lines[0].startswith("#")
    # Names and versions only: no address of an index, no path, no option of pip.
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9.-]*==[0-9][a-z0-9.]*", line) for line in lines[1:])
    pinned = dict(line.split("==") for line in lines[1:])
    for name, bound in bounds("plot", "test", "bench", "docs").items():
        assert numbers(pinned[name]) >= numbers(bound), name
    assert {"build", "twine", "hatchling", "editables"} <= set(pinned)


def test_the_oldest_versions_are_the_lower_bounds() -> None:
    lines = (ROOT / "requirements" / "min.txt").read_text(encoding="utf-8").splitlines()
    pinned = dict(line.split("==") for line in lines[1:])
    for name, bound in bounds("test").items():
        oldest = pinned[name.lower()]
        assert numbers(oldest)[: len(numbers(bound))] == numbers(bound), name
        assert not any(numbers(oldest)[len(numbers(bound)) :]), name


def test_lower_bounds_may_be_post_releases() -> None:
    assert bounds("dense")["wordllama"] == "0.4.0.post1"


def test_unknown_extras_are_refused() -> None:
    assert "no extra 'nothing'" in lowest("nothing").stderr


@pytest.mark.parametrize("package", ["atpgraph", "atpgraph_qa"])
def test_types_are_published(package: str) -> None:
    assert files(package).joinpath("py.typed").is_file()


def test_both_distributions_have_one_version() -> None:
    assert atpgraph_qa.__version__ == atpgraph.__version__
    assert f"atpgraph=={atpgraph.__version__}" in QA["dependencies"]


def test_the_core_needs_nothing_of_the_other_distribution() -> None:
    of_core = {item.partition(">")[0] for item in CORE["dependencies"]}
    web = {"fastapi", "uvicorn", "sqlalchemy", "httpx2", "jinja2", "lxml", "py7zr", "pyarrow"}
    assert not of_core & web


def without_qa(*command: str) -> subprocess.CompletedProcess[str]:
    """Run Python where only the core is installed: its files, and none of the entry points."""
    script = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'atpgraph_qa':\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "import importlib.metadata as metadata\n"
        "entry_points = metadata.entry_points\n"
        "def of_others(**group):\n"
        "    return [e for e in entry_points(**group) if e.dist.name != 'atpgraph-qa']\n"
        "metadata.entry_points = of_others\n"
    )
    return subprocess.run(
        [sys.executable, "-c", script + command[0], *command[1:]],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    "command",
    ["qa route model --title x", "server run --demo", "server --help", "data generate community"],
)
def test_commands_of_the_other_distribution_say_what_to_install(command: str) -> None:
    done = without_qa("from atpgraph.cli import main; main()", *command.split())
    assert done.returncode == 2
    assert done.stderr.startswith("atp: error: 'atp ")
    assert done.stderr.endswith("is part of atpgraph-qa: pip install atpgraph-qa.\n")
    assert done.stdout == ""


def test_the_core_works_alone() -> None:
    done = without_qa("from atpgraph.cli import main; main()", "--help")
    assert done.returncode == 0
    assert "Part of atpgraph-qa" in done.stdout


def test_old_names_lead_to_the_other_distribution() -> None:
    with pytest.warns(DeprecationWarning, match=r"atpgraph\.Advisor is now atpgraph_qa\.Advisor"):
        assert atpgraph.Advisor is atpgraph_qa.Advisor
    with pytest.warns(DeprecationWarning, match=r"atpgraph\.cqa\.Site is now atpgraph_qa\.Site"):
        from atpgraph.cqa import Site
    assert Site is atpgraph_qa.Site
    done = without_qa("from atpgraph import Advisor")
    assert "ImportError: atpgraph.Advisor is now atpgraph_qa.Advisor" in done.stderr
    assert "pip install atpgraph-qa" in done.stderr
