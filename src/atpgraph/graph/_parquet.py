"""Parquet tables of edges, in batches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from atpgraph.errors import InputError, MissingDependencyError
from atpgraph.graph._collect import EdgeCollector
from atpgraph.graph._dialect import choose_columns
from atpgraph.util.arrays import ByteArray, Float64Array, Int32Array, Int64Array
from atpgraph.util.threads import checkpoint

_BATCH = 1 << 18  # rows
_NO_BYTES: ByteArray = np.empty(0, dtype=np.uint8)


def collect_table(path: Path, edges: EdgeCollector, weights: bool) -> None:
    """Read the edges of a Parquet file, and the column named weight if `weights` are wanted."""
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError:
        raise MissingDependencyError("pyarrow", "parquet", "Reading Parquet") from None
    if not path.is_file():
        raise InputError(f"{path} is Parquet, which is read from a file; name one.")
    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            if len(names) < 2:
                raise InputError(f"{path} has one column; give one of sources and one of targets.")
            columns = choose_columns(names)
            wanted = [names[columns.source], names[columns.target]]
            if weights and columns.weight >= 0:
                wanted.append(names[columns.weight])
            if len(set(names)) < len(names):
                raise InputError(f"{path} has two columns of one name; rename one of them.")
            kinds = [_kind(path, file.schema_arrow.field(name)) for name in wanted[:2]]
            if kinds[0] != kinds[1]:
                raise InputError(
                    f"{path} has {kinds[0]} in {wanted[0]!r} and {kinds[1]} in {wanted[1]!r}; "
                    "give both the same type."
                )
            total = file.metadata.num_rows
            for batch in file.iter_batches(_BATCH, columns=wanted, use_threads=False):
                checkpoint()
                _collect(path, edges, pa.Table.from_batches([batch]).select(wanted), kinds[0])
                edges.check(4 * batch.nbytes, edges.n_rows / max(total, 1))
    except (pa.ArrowException, OSError) as error:
        why = " ".join(str(error).split())[:200]
        raise InputError(f"{path} is damaged or not a Parquet file ({why}).") from None
    if not edges.n_rows:
        raise InputError(f"{path} has no edges; give a table with one edge per row.")


def _kind(path: Path, field: Any) -> str:
    import pyarrow.types as is_a

    kind = field.type.value_type if is_a.is_dictionary(field.type) else field.type
    if is_a.is_integer(kind):
        return "integers"
    if is_a.is_string(kind) or is_a.is_large_string(kind) or is_a.is_string_view(kind):
        return "text"
    raise InputError(
        f"{path} has {field.type} in {field.name!r}; ids of nodes are integers or text."
    )


def _collect(path: Path, edges: EdgeCollector, table: Any, kind: str) -> None:
    for name, column in zip(table.column_names, table.columns, strict=True):
        if column.null_count:
            row = edges.n_rows + int(np.flatnonzero(column.is_null().to_numpy())[0])
            raise InputError(f"Row {row} of {path} has no {name!r}; drop such rows.")
    rows = len(table)
    ids = np.empty((rows, 2), dtype=np.int64)
    lengths = np.full((rows, 2), -1, dtype=np.int32)
    data = _NO_BYTES
    for side in range(2):
        column = table.column(side)
        if kind == "integers":
            ids[:, side] = _integers(path, edges, column, table.column_names[side])
        else:
            text, start, size = _texts(path, edges, column, table.column_names[side])
            ids[:, side], lengths[:, side] = start + len(data), size
            data = np.concatenate([data, text])
    weights = None if table.num_columns < 3 else _weights(path, edges, table.column(2))
    edges.add(data, ids, lengths, weights)


def _integers(path: Path, edges: EdgeCollector, column: Any, name: str) -> Int64Array:
    import pyarrow as pa

    try:
        return np.asarray(column.cast(pa.int64()).to_numpy())
    except pa.ArrowInvalid:
        raise InputError(
            f"{path} has an id in {name!r} that does not fit 64 bits with a sign; store "
            "ids as text."
        ) from None


def _texts(
    path: Path, edges: EdgeCollector, column: Any, name: str
) -> tuple[ByteArray, Int64Array, Int32Array]:
    """Return all bytes of a column of strings, the start of each string and its length."""
    import pyarrow as pa

    strings = column.cast(pa.large_string()).combine_chunks()
    if isinstance(strings, pa.ChunkedArray):  # what an empty column, and older releases, give
        strings = pa.concat_arrays(strings.chunks)
    _, offsets, content = strings.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[
        strings.offset : strings.offset + len(strings) + 1
    ]
    text = _NO_BYTES if content is None else np.frombuffer(content, dtype=np.uint8)
    text, starts = text[ends[0] : ends[-1]], ends[:-1] - ends[0]
    sizes = np.diff(ends).astype(np.int32)
    if (sizes == 0).any():
        row = edges.n_rows + int(sizes.argmin())
        raise InputError(f"Row {row} of {path} has an empty id in {name!r}; name both ends.")
    try:
        strings.validate(full=True)  # Parquet does not promise that strings are UTF-8
    except pa.ArrowInvalid:
        raw = text.tobytes()
        spans = zip(starts.tolist(), sizes.tolist(), strict=True)
        bad = (at for at, (i, n) in enumerate(spans) if not _is_utf8(raw[i : i + n]))
        raise InputError(
            f"Row {edges.n_rows + next(bad)} of {path} has an id in {name!r} that is not UTF-8; "
            "store ids as UTF-8 text."
        ) from None
    return text, starts, sizes


def _is_utf8(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def _weights(path: Path, edges: EdgeCollector, column: Any) -> Float64Array:
    import pyarrow as pa

    try:
        values = np.asarray(column.cast(pa.float64()).to_numpy())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(f"The weights of {path} are not all numbers: {error}.") from None
    bad = np.flatnonzero(~np.isfinite(values))
    if len(bad):
        raise InputError(
            f"Row {edges.n_rows + int(bad[0])} of {path} has the weight {values[bad[0]]}; weights "
            "must be finite."
        )
    return values
