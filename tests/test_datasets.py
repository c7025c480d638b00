"""Datasets: where files are looked for, what is accepted, and the download."""

from __future__ import annotations

import gzip
import threading
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from atpgraph import break_cycles, datasets
from atpgraph.datasets import Dataset, edge_checksum
from atpgraph.errors import AtpError, InputError
from atpgraph.graph import DiGraph
from atpgraph.graph.scc import cyclic_edges

EDGES = [(3, 1), (1, 2), (2, 3), (3, 4)]
TINY = Dataset(
    "tiny", "a test", 4, 4, "tiny.txt.gz", edges_sha256=edge_checksum(DiGraph.from_edges(EDGES))
)


def write(file: Path, edges: list[tuple[int, int]]) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    text = "# a comment\n" + "".join(f"{u}\t{v}\n" for u, v in edges)
    file.write_bytes(gzip.compress(text.encode()))
    return file


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of this machine is found: no data folder, an empty cache."""
    monkeypatch.delenv("ATP_DATA", raising=False)
    monkeypatch.setenv("ATP_CACHE", str(tmp_path / "cache"))
    (tmp_path / "work" / "here").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "work" / "here")
    monkeypatch.setitem(datasets.DATASETS, "tiny", TINY)


@pytest.mark.parametrize("inside", ["graphs", "."])
def test_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: str) -> None:
    file = write(tmp_path / "data" / inside / "tiny.txt.gz", EDGES)
    monkeypatch.setenv("ATP_DATA", str(tmp_path / "data"))
    assert datasets.path("TINY").samefile(file)
    assert datasets.fetch("tiny").samefile(file)
    assert set(datasets.load("tiny").edges()) == set(EDGES)
    assert "tiny" in datasets.available()


@pytest.mark.parametrize("folder", ["shared/data/graphs", "shared/data", "here", "here/graphs"])
def test_folders_nobody_named_are_not_searched(tmp_path: Path, folder: str) -> None:
    write(tmp_path / "work" / folder / "tiny.txt.gz", EDGES)
    assert "tiny" not in datasets.available()


def test_not_here(tmp_path: Path) -> None:
    assert "tiny" not in datasets.available()
    with pytest.raises(InputError, match="atp data fetch tiny"):
        datasets.path("tiny")


def test_wrong_counts_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "data" / "tiny.txt.gz", EDGES[:3])
    monkeypatch.setenv("ATP_DATA", str(tmp_path / "data"))
    with pytest.raises(InputError, match=r"3 nodes and 3 edges; tiny has 4 and 4"):
        datasets.load("tiny")


def test_unknown_name() -> None:
    with pytest.raises(InputError, match="wiki-Vote"):
        datasets.load("wiki-Votes")


def test_generated() -> None:
    planted, uniform = datasets.load("gnm-30k"), datasets.load("gnm-30k-uniform")
    assert planted.n_nodes == uniform.n_nodes == 30_000
    assert planted.n_edges == uniform.n_edges == 155_000
    # 5,000 edges close cycles in the first; the second has no order to begin with.
    assert 0 < cyclic_edges(planted).sum() < cyclic_edges(uniform).sum()
    assert "GNM-30K" in datasets.available()
    with pytest.raises(InputError, match="generated"):
        datasets.path("GNM-30K")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A web server on this machine in the place of SNAP."""
    pytest.importorskip("pooch")
    folder = tmp_path / "web"
    folder.mkdir()

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *arguments: object) -> None:
            pass

    httpd = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=str(folder)))
    threading.Thread(target=httpd.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{httpd.server_port}/tiny.txt.gz"
    monkeypatch.setitem(datasets.DATASETS, "tiny", replace(TINY, url=url))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    yield folder
    httpd.shutdown()
    httpd.server_close()


def test_download_once(server: Path, tmp_path: Path) -> None:
    write(server / "tiny.txt.gz", EDGES)
    file = datasets.fetch("tiny")
    assert file == tmp_path / "cache" / "tiny.txt.gz"
    (server / "tiny.txt.gz").unlink()
    assert datasets.load("tiny").n_edges == 4
    assert [entry.name for entry in file.parent.iterdir()] == ["tiny.txt.gz"]


@pytest.mark.parametrize(
    ("edges", "reason"),
    [(EDGES[:2], "2 edges"), ([(1, 2), (2, 3), (3, 4), (4, 1)], "not those of tiny")],
)
def test_a_wrong_download_is_refused_and_removed(
    server: Path, tmp_path: Path, edges: list[tuple[int, int]], reason: str
) -> None:
    write(server / "tiny.txt.gz", edges)
    with pytest.raises(InputError, match=reason):
        datasets.fetch("tiny")
    assert not list((tmp_path / "cache").iterdir())


def test_a_failed_download_is_one_sentence(server: Path) -> None:
    with pytest.raises(AtpError, match="set ATP_DATA"):
        datasets.fetch("tiny")


@pytest.mark.data
@pytest.mark.parametrize("name", ["wiki-Vote", "p2p-Gnutella31", "cit-HepPh"])
def test_real_files(data_dir: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("ATP_DATA", str(data_dir))
    graph = datasets.load(name)
    known = datasets.find(name).edges_sha256
    assert not known or edge_checksum(graph) == known


def test_imports_of_the_standard_library() -> None:
    graph = datasets.python_imports()
    edges = set(graph.edges())
    assert {("json", "json.decoder"), ("json.decoder", "re"), ("asyncio.events", "socket")} <= edges
    assert graph.n_nodes > 300
    assert graph.n_self_loops == 0
    removed = break_cycles(graph).removed
    assert 10 < len(removed) < graph.n_edges / 10  # there are cycles, and few edges close them


def test_installed_packages() -> None:
    edges = set(datasets.installed_packages().edges())
    assert ("scipy", "numpy") in edges
    assert not [name for pair in edges for name in pair if name != name.lower()]


def test_packages_that_are_half_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What an interrupted installation left has no name; an extra may be marked without blanks."""
    (tmp_path / "~alf-1.0.dist-info").mkdir()
    for name, needs in (
        ("one", "two; extra=='x'\nRequires-Dist: three"),
        ("two", ""),
        ("three", ""),
    ):
        folder = tmp_path / f"{name}-1.0.dist-info"
        folder.mkdir()
        text = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
        (folder / "METADATA").write_text(text + f"Requires-Dist: {needs}\n" * bool(needs))
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    assert list(datasets.installed_packages().edges()) == [("one", "three")]
