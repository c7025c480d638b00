"""One good file of every kind that we read, and the commands that read it."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from .forked import command

WELCOME = [{"user": 900001, "tags": ["a"], "text": "hello"}]


def build(root: Path) -> None:
    """Make the world: graphs, models, a dump, a site and a trained advisor, all of them small.

    It is made in this process, which thereby loads every kernel that children will need.
    """

    def atp(*arguments: object) -> None:
        if command([*map(str, arguments), "--quiet"]):
            raise RuntimeError(f"atp {arguments} failed")

    graph, dump, site = root / "graph.txt", root / "dump", root / "site"
    atp("generate", "cycles", "-o", graph, "--nodes", 60, "--edges", 150, "--planted", 12)
    lines = [line.split() for line in graph.read_text().splitlines() if line[:1].isdigit()]
    rows = "".join(f'"node {u}",n{v},{len(u)}.5\n' for u, v in lines)
    (root / "words.csv").write_text("source,target,weight\n" + rows)
    (root / "pairs.txt").write_text("".join(f"{u} {v}\n" for u, v in lines[:20]))
    atp("embed", graph, "-o", root / "model.npz", "--dim", 8)
    atp("embed", root / "words.csv", "-o", root / "words.npz", "--dim", 8)
    atp("generate", "community", "-o", dump, "--questions", 150, "--users", 40, "--topics", 2)
    atp("generate", "community", "-o", root / "dump2", "--questions", 30, "--users", 9)
    atp("cqa", "ingest", dump, "-o", site)
    atp("cqa", "train", site, "-o", root / "advisor")
    (root / "welcome.json").write_text(json.dumps(WELCOME))
    atp("cqa", "route", root / "advisor", "--title", "how", "--log", root / "log.json")
    _pack(dump, root / "dump.7z")


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


def reader(file: str, typed: str) -> Reader:
    return Reader(file, tuple(typed.split()))


READERS = [
    reader("graph.txt", "embed {d}/graph.txt -o {d}/out.npz --dim 4 --memory 500MB"),
    reader("graph.txt", "break-cycles {d}/graph.txt -o {d}/out.txt"),
    reader("words.csv", "hierarchy {d}/words.csv -o {d}/out.csv"),
    reader("model.npz", "predict {d}/model.npz 1 2"),
    reader("model.npz", "info {d}/model.npz --json"),
    reader("words.npz", "neighbors {d}/words.npz n7 --top 3"),
    reader("model.npz", "export {d}/model.npz --format npy -o {d}/out"),
    reader("pairs.txt", "predict {d}/model.npz --pairs {d}/pairs.txt"),
    reader("dump/*.xml", "cqa ingest {d}/dump -o {d}/out"),
    reader("dump.7z", "cqa ingest {d}/dump.7z -o {d}/out"),
    reader("site/**/*", "cqa stats {d}/site"),
    reader("site/**/*", "cqa difficulty {d}/site --methods number-of-answers"),
    reader("advisor/**/*", "cqa route {d}/advisor --title how"),
    reader("advisor/**/*", "cqa experts {d}/advisor --top 3"),
    reader("log.json", "cqa route {d}/advisor --title how --per-day 2 --log {d}/log.json"),
    reader("welcome.json", "cqa route {d}/advisor --title how --welcome {d}/welcome.json"),
    reader("dump/truth.npz", "cqa evaluate {d}/site --methods bm25 --truth {d}/dump/truth.npz"),
]


def clone(world: Path, target: Path) -> Path:
    """A copy that may be ruined; hard links, since damage always writes a new file."""
    shutil.copytree(world, target, copy_function=os.link)
    return target
