"""Tables of edges as Arrow batches: Parquet files, and every object with an Arrow stream."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from atpgraph.errors import InputError, MissingDependencyError
from atpgraph.graph._dialect import OPTIONS, ColumnOptions, Columns, ambiguous, choose_columns
from atpgraph.graph._numbering import EdgeCollector
from atpgraph.util.arrays import ByteArray, Float64Array, Int64Array
from atpgraph.util.threads import checkpoint

_BATCH = 1 << 18  # rows


def collect_parquet(
    path: Path, edges: EdgeCollector, options: ColumnOptions, remedy: str = OPTIONS
) -> None:
    """Read the edges of a Parquet file, in batches."""
    pa = _pyarrow("Reading Parquet")
    import pyarrow.parquet as pq

    if not path.is_file():
        raise InputError(f"{path} is Parquet, which is read from a file; name one.")
    try:
        with pq.ParquetFile(path) as file:
            table = _Table(str(path), file.schema_arrow, edges, options, remedy)
            batches = file.iter_batches(_BATCH, columns=table.wanted, use_threads=False)
            table.collect(batches, file.metadata.num_rows)
    except (pa.ArrowException, OSError) as error:
        why = " ".join(str(error).split())[:200]
        raise InputError(f"{path} is damaged or not a Parquet file ({why}).") from None


def collect_stream(obj: Any, edges: EdgeCollector, options: ColumnOptions) -> None:
    """Read the edges of an object with ``__arrow_c_stream__``, such as a DuckDB relation."""
    pa = _pyarrow(f"Reading a {type(obj).__name__}")
    if getattr(obj, "ndim", 2) != 2:
        raise _not_a_table(obj)
    if not hasattr(obj, "__arrow_c_stream__"):
        obj = pa.Table.from_batches([pa.RecordBatch.from_struct_array(pa.array(obj))])
    try:
        reader = pa.RecordBatchReader.from_stream(obj)
    except pa.ArrowInvalid as error:
        if "non-struct" not in str(error):
            raise
        raise _not_a_table(obj) from None
    _Table("The table", reader.schema, edges, options).collect(reader)


def _not_a_table(obj: Any) -> InputError:
    return InputError(
        f"A {type(obj).__module__.partition('.')[0]} {type(obj).__name__} is not a table; "
        "give one with a column of sources and one of targets."
    )


def choose_table_columns(
    what: str, names: Sequence[str], options: ColumnOptions, remedy: str = OPTIONS
) -> Columns:
    """Return the columns of a table with names, or raise the error that asks for them."""
    if len(names) < 2:
        count = "one column" if names else "no columns"
        raise InputError(f"{what} has {count}; give one of sources and one of targets.")
    columns = choose_columns(names, options)
    if not columns.sure:
        raise ambiguous(what, names, remedy)
    return columns


def _pyarrow(what: str) -> Any:
    try:
        import pyarrow
    except ImportError:
        raise MissingDependencyError("pyarrow", "parquet", what) from None
    return pyarrow


class _Table:
    """The columns of a table that hold its edges, and how to read them.

    Attributes
    ----------
    wanted : list of str
        Names of the columns to read: source, target, and weight and type if there are any.
    """

    def __init__(
        self, what: str, schema: Any, edges: EdgeCollector, options: ColumnOptions,
        remedy: str = OPTIONS,
    ) -> None:  # fmt: skip
        self.what, self.edges = what, edges
        names = schema.names
        self.columns = choose_table_columns(what, names, options, remedy)
        places = [at for at in self.columns[:4] if at >= 0]
        self.wanted = [names[at] for at in places]
        for name in self.wanted:
            if names.count(name) > 1:
                raise InputError(f"{what} has two columns called {name!r}; rename one of them.")
        self.are_texts = [self._is_text(schema.field(at)) for at in places[:2]]
        edges.ids = "names" if all(self.are_texts) else "mixed" if any(self.are_texts) else "binary"

    def _is_text(self, field: Any) -> bool:
        import pyarrow.types as is_a

        kind = field.type.value_type if is_a.is_dictionary(field.type) else field.type
        if is_a.is_string(kind) or is_a.is_large_string(kind) or is_a.is_string_view(kind):
            return True
        # Floats and decimals as well: what databases and missing values make of integers.
        if is_a.is_integer(kind) or is_a.is_floating(kind) or is_a.is_decimal(kind):
            return False
        raise InputError(
            f"{self.what} has {field.type} in {field.name!r}; ids of nodes are integers or text."
        )

    def collect(self, batches: Iterable[Any], total: int | None = None) -> None:
        """Add the edges of all batches; `total` is the number of rows, if it is known."""
        import pyarrow as pa

        for batch in batches:
            checkpoint()
            self._add(pa.Table.from_batches([batch]).select(self.wanted))
            done = 1.0 if total is None else self.edges.n_rows / max(total, 1)
            try:
                size = batch.nbytes
            except pa.ArrowTypeError:  # views of strings, in older releases
                size = batch.get_total_buffer_size()
            self.edges.check(4 * size, done)
        if not self.edges.n_rows:
            raise InputError(f"{self.what} has no edges; give a table with one edge per row.")

    def _add(self, table: Any) -> None:
        for name, column in zip(table.column_names, table.columns, strict=True):
            if column.null_count:
                raise self._error(column.is_null().to_numpy(), f"has no {name!r}; drop such rows")
        sides = [self._ids(table, side, is_text) for side, is_text in enumerate(self.are_texts)]
        if self.columns.type >= 0:
            sides.append(self._texts(table.column(len(self.wanted) - 1), self.wanted[-1]))
        before = np.cumsum([0, *(len(data) for data, _ in sides)])
        spans = [
            end
            for (_, ends), start in zip(sides, before, strict=False)
            for end in (ends[:-1] + start, ends[1:] + start)
        ]
        weights = self._weights(table.column(2)) if self.columns.weight >= 0 else None
        self.edges.add(
            np.concatenate([data for data, _ in sides]), np.stack(spans, axis=1), weights
        )

    def _ids(self, table: Any, side: int, is_text: bool) -> tuple[ByteArray, Int64Array]:
        """Return the bytes of one end of the edges, and where each of them ends, from 0 on."""
        import pyarrow as pa
        import pyarrow.compute as pc

        column, name = table.column(side), self.wanted[side]
        if is_text:
            found = self._texts(column, name)
            if self.edges.ids == "names":
                return found
        else:
            column = self._integers(column, name)
            if self.edges.ids == "binary":
                values = np.ascontiguousarray(column.to_numpy())
                return values.view(np.uint8), 8 * np.arange(len(values) + 1)
        mark = pa.scalar("t" if is_text else "i", pa.large_string())
        marked = pc.binary_join_element_wise(
            mark, _strings(column), pa.scalar("", pa.large_string())
        )
        return self._texts(marked, name)

    def _integers(self, column: Any, name: str) -> Any:
        import pyarrow as pa

        try:
            if pa.types.is_floating(column.type):  # NaN is what pandas has for a missing number
                values = column.to_numpy()
                if np.isnan(values).any():
                    raise self._error(np.isnan(values), f"has no {name!r}; drop such rows")
            return column.cast(pa.int64())
        except pa.ArrowInvalid:
            raise InputError(
                f"{self.what} has {column.type} in {name!r} that are not all integers of 64 bits; "
                "store ids as text."
            ) from None

    def _texts(self, column: Any, name: str) -> tuple[ByteArray, Int64Array]:
        """Return all bytes of a column of strings, and where each string ends, from 0 on."""
        import pyarrow as pa

        strings = _strings(column).combine_chunks()
        if isinstance(strings, pa.ChunkedArray):  # what an empty column, and older releases, give
            strings = pa.concat_arrays(strings.chunks)
        _, offsets, content = strings.buffers()
        ends = np.frombuffer(offsets, np.int64, len(strings) + 1, 8 * strings.offset)
        text = np.frombuffer(content or b"", dtype=np.uint8)[ends[0] : ends[-1]]
        ends = ends - ends[0]
        if (ends[1:] == ends[:-1]).any():
            empty = ends[1:] == ends[:-1]
            raise self._error(empty, f"has nothing in {name!r}; fill it in or drop such rows")
        try:
            strings.validate(full=True)  # Parquet does not promise that strings are UTF-8
        except pa.ArrowInvalid:
            raw = [text[start:end].tobytes() for start, end in pairwise(ends)]
            bad = [string.decode(errors="ignore").encode() != string for string in raw]
            raise self._error(bad, f"has bytes in {name!r} that are not UTF-8 text") from None
        return text, ends

    def _weights(self, column: Any) -> Float64Array:
        import pyarrow as pa

        try:
            values = np.asarray(column.cast(pa.float64()).to_numpy())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InputError(f"{self.what} has weights that are not numbers: {error}.") from None
        bad = ~np.isfinite(values)
        if bad.any():
            problem = f"has the weight {values[bad.argmax()]}; weights must be finite"
            raise self._error(bad, problem)
        return values

    def _error(self, bad: Any, problem: str) -> InputError:
        row = self.edges.n_rows + int(np.argmax(bad))
        what = self.what if self.what[0] != "T" else "the table"
        return InputError(f"Row {row} of {what} {problem}.")


def _strings(column: Any) -> Any:
    """Return a column as strings of any length."""
    import pyarrow as pa

    try:
        return column.cast(pa.large_string())
    except pa.ArrowNotImplementedError:  # views, in older releases
        return pa.chunked_array([pa.array(column.to_pylist(), pa.large_string())])
