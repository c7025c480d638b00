"""One good file of every kind that we read, the commands that read it, and those that write."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from .forked import command, settle

WELCOME = [{"user": 900001, "tags": ["a"], "text": "hello"}]


def build(root: Path) -> None:
    """Make the world: graphs, models, a dump, a site and a trained advisor, all of them small.

    It is made in this process, which thereby loads every kernel that children will need.
    """

    def atp(*arguments: object) -> None:
        if command([*map(str, arguments), "--quiet"]):
            raise RuntimeError(f"atp {arguments} failed")

    graph, dump, site = root / "graph.txt", root / "dump", root / "site"
    atp("data", "generate", "cycles", "-o", graph, "--nodes", 60, "--edges", 150, "--planted", 12)
    (root / "graph.txt.gz").write_bytes(gzip.compress(graph.read_bytes(), mtime=0))
    lines = [line.split() for line in graph.read_text().splitlines() if line[:1].isdigit()]
    rows = "".join(f'"node {u}",n{v},{len(u)}.5\n' for u, v in lines)
    (root / "words.csv").write_text("source,target,weight\n" + rows)
    (root / "pairs.txt").write_text("".join(f"{u} {v}\n" for u, v in lines[:20]))
    (root / "truth.txt").write_text("".join(f"{u} {v}\n" for u, v in lines[:9]))
    atp("embed", graph, "-o", root / "model.npz", "--dim", 8)
    atp("embed", root / "words.csv", "-o", root / "words.npz", "--dim", 8, "-p", "paper")
    atp("reach", graph, "-o", root / "index.npz")
    atp("links", "fit", graph, "-o", root / "links.npz", "--dim", 4)
    atp(
        "embed", graph, "-o", root / "out.npz", "--dim", 4, "--max-iter", 2, "--work", root / "work"
    )
    (root / "out.npz").unlink()
    atp("server", "tokens", "forum", "--scopes", "read", "--folder", root / "service")
    atp("server", "backup", root / "backup.zip", "--folder", root / "service")
    atp(
        "data",
        "generate",
        "community",
        "-o",
        dump,
        "--questions",
        150,
        "--users",
        40,
        "--topics",
        2,
    )
    atp("data", "generate", "community", "-o", root / "dump2", "--questions", 30, "--users", 9)
    atp("qa", "ingest", dump, "-o", site)
    atp("qa", "train", site, "-o", root / "advisor")
    (root / "welcome.json").write_text(json.dumps(WELCOME))
    atp("qa", "route", root / "advisor", "--title", "how", "--log", root / "log.json")
    _pack(dump, root / "dump.7z")
    for written in WRITERS.values():  # loads what only they need
        made = root / "made"
        made.mkdir()
        atp(*written.typed(root, made))
        shutil.rmtree(made)
    settle()


def _pack(folder: Path, archive: Path) -> None:
    import py7zr

    with py7zr.SevenZipFile(archive, "w") as file:
        for path in sorted(folder.glob("*.xml")):
            file.write(path, path.name)


@dataclass(frozen=True)
class Reader:
    """A command that reads a kind of file.

    Attributes
    ----------
    file : str
        The file of the world to damage; ``*`` picks one of several.
    arguments : tuple of str
        What is typed; ``{d}`` is the folder of the world.
    """

    file: str
    arguments: tuple[str, ...]

    @property
    def needs(self) -> set[str]:
        """The entries of the world that the command is told of."""
        typed = (part[4:] for part in self.arguments if part.startswith("{d}/"))
        return {self.file.split("/")[0], *(name.split("/")[0] for name in typed)}


def reader(file: str, typed: str) -> Reader:
    return Reader(file, tuple(typed.split()))


READERS = [
    reader("graph.txt", "embed {d}/graph.txt -o {d}/out.npz --dim 4 --max-iter 2 --memory 500MB"),
    reader("graph.txt", "cycles {d}/graph.txt -o {d}/out.txt"),
    reader("truth.txt", "cycles {d}/graph.txt -m dfs --truth {d}/truth.txt"),
    reader("words.csv", "levels {d}/words.csv -o {d}/out.csv"),
    reader("graph.txt.gz", "reach {d}/graph.txt.gz 1 2 -o {d}/out.npz"),
    reader("index.npz", "reach {d}/index.npz --descendants 1"),
    reader(
        "work/**/*",
        "embed {d}/graph.txt -o {d}/out.npz --dim 4 --max-iter 2 --work {d}/work",
    ),
    reader("links.npz", "links score {d}/links.npz 1 2"),
    reader("links.npz", "links recommend {d}/links.npz 1 --top 3 --explain"),
    reader("backup.zip", "server restore {d}/backup.zip --folder {d}/restored"),
    reader("model.npz", "model score {d}/model.npz 1 2"),
    reader("model.npz", "info {d}/model.npz --json"),
    reader("words.npz", "model top {d}/words.npz n7 --top 3"),
    reader("model.npz", "model export {d}/model.npz --format npy -o {d}/out"),
    reader("words.npz", "model export {d}/words.npz --format csv -o {d}/out.csv"),
    reader("pairs.txt", "model score {d}/model.npz --pairs {d}/pairs.txt"),
    reader("dump/*.xml", "qa ingest {d}/dump -o {d}/out"),
    reader("dump.7z", "qa ingest {d}/dump.7z -o {d}/out"),
    reader("site/**/*", "qa stats {d}/site"),
    reader("site/**/*", "qa difficulty {d}/site --methods number-of-answers"),
    reader("advisor/**/*", "qa route {d}/advisor --title how"),
    reader("advisor/[em]*", "qa experts {d}/advisor --top 3"),
    reader("log.json", "qa route {d}/advisor --title how --per-day 2 --log {d}/log.json"),
    reader("welcome.json", "qa route {d}/advisor --title how --welcome {d}/welcome.json"),
    reader(
        "dump/truth.npz",
        "qa evaluate {d}/site --text bm25 --methods bm25 --truth {d}/dump/truth.npz",
    ),
]


@dataclass(frozen=True)
class Writer:
    """A command that writes.

    Attributes
    ----------
    line : str
        What is typed: ``{w}`` is the world, ``{d}`` the folder to write to, and the other names
        are keys of `INPUT` and `OTHER`.
    outputs : tuple of str
        What appears in the folder.
    """

    line: str
    outputs: tuple[str, ...]

    def typed(self, world: Path, folder: Path, other: bool = False) -> list[str]:
        """The words of the command, for the one input or for the other."""
        return self.line.format(w=world, d=folder, **(OTHER if other else INPUT)).split()


# What a command reads, and what it read when it made the old result.
INPUT = {"graph": "graph.txt", "model": "model.npz", "dump": "dump", "n": 20, "day": 1, "k": 2}
OTHER = {"graph": "words.csv", "model": "words.npz", "dump": "dump2", "n": 30, "day": 2, "k": 1}

WRITERS = {
    "embed": Writer("embed {w}/{graph} --dim 4 --max-iter 2 -o {d}/out.npz", ("out.npz",)),
    "compare": Writer(
        "links compare {w}/{graph} --methods levels --protocol random --dim {k} --seeds 1 "
        "--report {d}/out",
        ("out",),
    ),
    "cycles": Writer(
        "cycles {w}/{graph} -m dfs -o {d}/out.txt --removed {d}/out.csv",
        ("out.txt", "out.csv"),
    ),
    "levels": Writer("levels {w}/{graph} -m dfs -o {d}/out.csv", ("out.csv",)),
    "reach": Writer("reach {w}/{graph} -o {d}/out.npz", ("out.npz",)),
    "links": Writer("links fit {w}/{graph} -o {d}/out.npz --dim 2", ("out.npz",)),
    "export-word2vec": Writer("model export {w}/{model} --format word2vec -o {d}/out", ("out",)),
    "export-npy": Writer("model export {w}/{model} --format npy -o {d}/out", ("out",)),
    "export-csv": Writer("model export {w}/{model} --format csv -o {d}/out.csv", ("out.csv",)),
    "export-parquet": Writer(
        "model export {w}/{model} --format parquet -o {d}/out.parquet", ("out.parquet",)
    ),
    "plot": Writer("plot {w}/{graph} -m dfs -o {d}/out.svg", ("out.svg",)),
    "generate": Writer(
        "data generate cycles --nodes {n} --edges 60 --planted 3 -o {d}/out.txt", ("out.txt",)
    ),
    "community": Writer(
        "data generate community --questions {n} --users 9 --topics 2 -o {d}/out", ("out",)
    ),
    "ingest": Writer("qa ingest {w}/{dump} -o {d}/out", ("out",)),
    "difficulty": Writer(
        "qa difficulty {w}/site --methods number-of-answers --top {k} -o {d}/out.csv", ("out.csv",)
    ),
    "route": Writer(
        "qa route {w}/advisor --title how --at 2031-01-0{day} --log {d}/out.json", ("out.json",)
    ),
    "train": Writer("qa train {w}/site --dim {k} -o {d}/out", ("out",)),
}


def clone(world: Path, target: Path, names: Iterable[str]) -> Path:
    """A copy of some entries that may be ruined; hard links, since damage always writes anew."""
    target.mkdir()
    for source in map(world.joinpath, names):
        if source.is_dir():
            shutil.copytree(source, target / source.name, copy_function=os.link)
        elif source.exists():  # what the command is to write does not
            os.link(source, target / source.name)
    return target
