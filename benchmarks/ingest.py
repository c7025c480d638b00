"""Speed of ``atp qa ingest`` against a bare lxml pass over the same Posts.xml.

    python benchmarks/ingest.py [--megabytes 100] [--rounds 3] [--dump FOLDER_OR_7Z …]

Without ``--dump`` it makes a dump: a simulated community, repeated under new ids until it has the
size. The bare pass is `iterparse` with the usual clearing of elements; it stores nothing. Both run
in turn, `rounds` times; the table has the best of each, and their ratio. Times are wall clock; the
processor time of all threads stands beside it, because a busy machine hides one but not the other.
"""

from __future__ import annotations

import argparse
import re
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from lxml import etree

from atpgraph_qa import ingest, simulate_community, write_dump

_NUMBER = re.compile(rb'((?:^  <row Id|ParentId|AcceptedAnswerId)=")(\d+)"', re.MULTILINE)


def make_dump(folder: Path, megabytes: float) -> Path:
    """A community, repeated under new ids until Posts.xml has the size."""
    seed = folder / "seed"
    write_dump(simulate_community(1000, 5000, random_state=0), seed)
    head, rows, tail = re.split(rb"(?<=<posts>\n)|(?=</posts>)", (seed / "Posts.xml").read_bytes())
    step = rows.count(b"<row")
    dump = folder / "dump"
    dump.mkdir()
    with (dump / "Posts.xml").open("wb") as file:
        file.write(head)
        for copy in range(max(1, round(megabytes * 1e6 / len(rows)))):
            offset = copy * step
            file.write(_NUMBER.sub(lambda m, by=offset: m[1] + b'%d"' % (int(m[2]) + by), rows))
        file.write(tail)
    return dump


def unpack(archive: Path, folder: Path) -> Path:
    """Posts.xml of an archive, as a folder, so that both passes read the same file."""
    import py7zr

    with py7zr.SevenZipFile(archive) as opened:
        name = next(name for name in opened.getnames() if name.endswith("Posts.xml"))
        opened.extract(folder, targets=[name])
    return (folder / name).parent


def bare_pass(path: Path) -> int:
    """What any reader of the file has to do at least."""
    rows = 0
    for _, row in etree.iterparse(path, tag="row"):
        rows += 1
        row.clear()
        while row.getprevious() is not None:
            del row.getparent()[0]
    return rows


def timed(work: Callable[[], object]) -> tuple[float, float]:
    wall, processor = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - wall, time.process_time() - processor


def compare(dump: Path, site: Path, rounds: int) -> tuple[float, ...]:
    posts = dump / "Posts.xml"
    bare, ours = [], []
    for _ in range(rounds):
        bare.append(timed(lambda: bare_pass(posts)))
        ours.append(timed(lambda: ingest(dump, site)))
    size = sum((dump / name).stat().st_size for name in ("Posts.xml",)) / 1e6
    best = [min(times) for times in (*zip(*bare, strict=True), *zip(*ours, strict=True))]
    return (size, *(size / seconds for seconds in best))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=100.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--dump", type=Path, nargs="*", default=[])
    options = parser.parse_args()
    print("| dump | MB | lxml MB/s | ingest MB/s | ratio | ratio of processor time |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        dumps = [("generated", make_dump(folder, options.megabytes))]
        for number, given in enumerate(options.dump):
            only = folder / f"given{number}"
            only.mkdir()
            if given.is_dir():
                (only / "Posts.xml").symlink_to((given / "Posts.xml").resolve())
            else:
                only = unpack(given, only)
            dumps.append((given.name, only))
        warm = folder / "warm"
        ingest(folder / "seed", warm)  # imports are no part of the rate
        for label, dump in dumps:
            for extra in dump.iterdir():
                if extra.name != "Posts.xml":
                    extra.unlink()
            size, bare, bare_cpu, ours, ours_cpu = compare(dump, folder / "site", options.rounds)
            print(
                f"| {label} | {size:.1f} | {bare:.0f} | {ours:.0f} | {ours / bare:.2f} "
                f"| {ours_cpu / bare_cpu:.2f} |"
            )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\nPeak memory of the process: {peak:.0f} MB")


if __name__ == "__main__":
    main()
