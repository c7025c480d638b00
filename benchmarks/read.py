"""Reading edge lists, against polars with NumPy and SciPy. One run, all ratios in it.

    python benchmarks/read.py --output benchmarks/results/read.md

The rival reads the two columns with polars, numbers the ids with ``np.unique`` and builds SciPy's
CSR matrix, which is what one writes by hand: no header, no comments, no weights, no duplicates.
"""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path

import numpy as np
from _common import Report, arguments, best_of, in_subprocess, markdown

from atpgraph.util.memory import peak_memory

SIZES = (100_000, 1_000_000, 5_000_000)


def write(folder: Path, kind: str, m: int, *, packed: bool) -> Path:
    """A random graph of m / 5 nodes: integers (also packed), integers far apart, or text."""
    rng = np.random.default_rng(0)
    ends = rng.integers(0, m // 5, (m, 2))
    if kind == "far apart":
        ends = rng.integers(0, 2**40, m // 5)[ends]
    start = "user" if kind == "text" else ""
    lines = "".join(f"{start}{u}\t{start}{v}\n" for u, v in ends.tolist()).encode()
    path = folder / f"{kind}-{m}.tsv"
    path.write_bytes(lines)
    if kind == "integers" and packed:
        Path(f"{path}.gz").write_bytes(gzip.compress(lines, 6))
        _write_others(path, lines, ends)
    return path


def _write_others(path: Path, lines: bytes, ends: np.ndarray) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq
    import zstandard

    Path(f"{path}.zst").write_bytes(zstandard.compress(lines))
    pq.write_table(pa.table({"source": ends[:, 0], "target": ends[:, 1]}), f"{path}.parquet")


def ours(path: str) -> tuple[int, int]:
    """Nodes and edges as atpgraph reads them."""
    from atpgraph import read_edgelist

    graph = read_edgelist(path)
    return graph.n_nodes, graph.n_edges


def rival(path: str) -> tuple[int, int]:
    """Nodes and edges the usual way."""
    import polars
    import scipy.sparse as sp

    table = polars.read_csv(path, separator="\t", has_header=False)
    ends = np.concatenate([table.to_series(0).to_numpy(), table.to_series(1).to_numpy()])
    labels, codes = np.unique(ends, return_inverse=True)
    m, n = len(table), len(labels)
    matrix = sp.csr_array((np.ones(m, np.int8), (codes[:m], codes[m:])), shape=(n, n))
    matrix.sum_duplicates()
    return n, matrix.nnz


def job(task: dict[str, str]) -> dict[str, float]:
    """One measurement in a process of its own; memory above what the interpreter holds."""
    read = ours if task["who"] == "ours" else rival
    small = Path(task["path"]).parent / "small.tsv"
    small.write_text("1\t2\n2\t3\n")
    read(str(small))  # compile, import
    with peak_memory() as peak:
        wall, cpu, (nodes, edges) = best_of(2, lambda: read(task["path"]))
    mb = (peak.bytes or 0) / 1e6
    return {"wall": wall, "cpu": cpu, "nodes": nodes, "edges": edges, "mb": mb}


def main() -> None:
    """Write the files, measure, report."""
    parser = arguments((__doc__ or "").split("\n")[0])
    parser.add_argument("--largest", type=int, default=SIZES[-1], help="edges of the largest file")
    options = parser.parse_args()
    if options.job:
        print(json.dumps(job(json.loads(options.job))))
        return
    report = Report(
        "Reading edge lists",
        f"python benchmarks/read.py --largest {options.largest}",
        options.output,
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sizes = [m for m in SIZES if m <= options.largest]
        rows: list[list[object]] = []
        for kind in ("integers", "far apart", "text"):
            first = None
            for m in sizes:
                path = write(folder, kind, m, packed=m == sizes[-1])
                a, b = (
                    in_subprocess(__file__, {"who": who, "path": str(path)})
                    for who in ("ours", "rival")
                )
                if (a["nodes"], a["edges"]) != (b["nodes"], b["edges"]):
                    raise RuntimeError(f"{path} is read differently")
                decades = np.log10(m / SIZES[0])
                first = first or a["cpu"]
                growth = float((a["cpu"] / first) ** (1 / decades)) if decades else ""
                rows.append(
                    [kind, m, a["wall"], a["cpu"], b["cpu"], a["cpu"] / b["cpu"], growth, a["mb"],
                     b["mb"]]
                )  # fmt: skip
        report.add(
            "Best of 2, each in a process of its own, compiled before; n = m / 5. MB above what "
            "the process held before. Growth of CPU seconds: against the smallest file, per 10 ×."
        )
        columns = ["ids", "edges", "seconds", "CPU seconds", "polars + np.unique + CSR, CPU",
                   "ratio of CPU", "× CPU", "MB", "polars …, MB"]  # fmt: skip
        report.add(markdown(columns, rows))
        packed = []
        for suffix in ("", ".gz", ".zst", ".parquet"):
            path = f"{folder / f'integers-{sizes[-1]}.tsv'}{suffix}"
            found = in_subprocess(__file__, {"who": "ours", "path": path})
            size = Path(path).stat().st_size / 1e6
            packed.append([suffix or "plain", size, found["wall"], found["cpu"], found["mb"]])
        report.add(f"## Compressed, and Parquet\n\n{sizes[-1]:,} edges, integers.")
        report.add(markdown(["file", "MB", "seconds", "CPU seconds", "peak MB"], packed))
    report.save()


if __name__ == "__main__":
    main()
