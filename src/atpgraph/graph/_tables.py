"""Tables of edges as Arrow batches: Parquet files, and every object with an Arrow stream."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from atpgraph.errors import InputError, MissingDependencyError
from atpgraph.graph._dialect import ColumnOptions, Columns, ambiguous, choose_columns
from atpgraph.graph._numbering import EdgeRows, check_budget
from atpgraph.graph.digraph import concatenate_labels
from atpgraph.util.arrays import AnyArray, Float64Array, Int32Array
from atpgraph.util.threads import checkpoint

_BATCH = 1 << 18  # rows
_BYTES_PER_ROW = 48  # of codes and of sorting, weights included
_BYTES_PER_LABEL = 100


def parquet_rows(path: Path, budget: int, options: ColumnOptions) -> EdgeRows:
    """Read the edges of a Parquet file, in batches."""
    pa = _pyarrow("Reading Parquet")
    import pyarrow.parquet as pq

    if not path.is_file():
        raise InputError(f"{path} is Parquet, which can only be read from a file; name one.")
    try:
        with pq.ParquetFile(path) as file:
            table = _Table(str(path), file.schema_arrow, options)
            batches = file.iter_batches(_BATCH, columns=table.wanted, use_threads=False)
            return table.rows(batches, budget, file.metadata.num_rows)
    except (pa.ArrowException, OSError) as error:
        why = " ".join(str(error).split())[:200]
        raise InputError(f"{path} is damaged or not a Parquet file ({why}).") from None


def stream_rows(obj: Any, budget: int, options: ColumnOptions) -> EdgeRows:
    """Read the edges of an object with ``__arrow_c_stream__``, such as a DuckDB relation."""
    pa = _pyarrow(f"Reading a {type(obj).__name__}")
    if getattr(obj, "ndim", 2) != 2:
        raise _not_a_table(obj)
    if not hasattr(obj, "__arrow_c_stream__"):
        array = pa.array(obj)
        if not isinstance(array, pa.StructArray):
            raise _not_a_table(obj)
        obj = pa.Table.from_batches([pa.RecordBatch.from_struct_array(array)])
    try:
        reader = pa.RecordBatchReader.from_stream(obj)
    except pa.ArrowInvalid as error:
        if "non-struct" not in str(error):
            raise
        raise _not_a_table(obj) from None
    return _Table("The table", reader.schema, options).rows(reader, budget)


def _not_a_table(obj: Any) -> InputError:
    return InputError(
        f"A {type(obj).__module__.partition('.')[0]} {type(obj).__name__} is not a table; "
        "give one with a column of sources and one of targets."
    )


def choose_table_columns(what: str, names: Sequence[str], options: ColumnOptions) -> Columns:
    """Return the columns of a table with names, or raise the error that asks for them."""
    if len(names) < 2:
        count = "one column" if names else "no columns"
        raise InputError(f"{what} has {count}; give one for sources and one for targets.")
    columns = choose_columns(names, options)
    if not columns.sure:
        raise ambiguous(what, names, options)
    return columns


def _pyarrow(what: str) -> Any:
    try:
        import pyarrow
        import pyarrow.compute  # an attribute from now on
    except ImportError:
        raise MissingDependencyError("pyarrow", "parquet", what) from None
    return pyarrow


class _Table:
    """The columns of a table that hold its edges, and how to read them.

    `wanted` has the names of the columns to read: source, target, and weight and type if there are
    any.
    """

    def __init__(self, what: str, schema: Any, options: ColumnOptions) -> None:
        self.pa = _pyarrow("Reading a table")
        self.what, names = what, schema.names
        self.columns = choose_table_columns(what, names, options)
        places = [at for at in self.columns[:4] if at >= 0]
        self.wanted = [names[at] for at in places]
        for name in self.wanted:
            if names.count(name) > 1:
                raise InputError(f"{what} has two columns called {name!r}; rename one of them.")
        self.are_texts = [self._is_text(schema.field(at)) for at in places[:2]]

    def _is_text(self, field: Any) -> bool:
        is_a = self.pa.types
        kind = field.type.value_type if is_a.is_dictionary(field.type) else field.type
        if is_a.is_string(kind) or is_a.is_large_string(kind) or is_a.is_string_view(kind):
            return True
        # Floats and decimals as well: what databases and missing values make of integers.
        if is_a.is_integer(kind) or is_a.is_floating(kind) or is_a.is_decimal(kind):
            return False
        raise InputError(
            f"{self.what} has {field.type} values in {field.name!r}; node ids are integers or text."
        )

    def rows(self, batches: Iterable[Any], budget: int, total: int | None = None) -> EdgeRows:
        """Return the edges of all batches; `total` is the number of rows, if it is known."""
        pa, parts, count, held = self.pa, [], 0, 0
        for batch in batches:
            checkpoint()
            parts.append(batch.select(self.wanted))
            count += len(batch)
            try:
                held += parts[-1].nbytes
            except pa.ArrowTypeError:  # views of strings, in older releases
                held += parts[-1].get_total_buffer_size()
            need = (held + _BYTES_PER_ROW * count) * (total or count) // max(count, 1)
            check_budget(self.what, need, budget)
        if not count:
            raise InputError(f"{self.what} has no edges; give a table with one edge per row.")
        table = pa.Table.from_batches(parts)
        for name, column in zip(self.wanted, table.columns, strict=True):
            if column.null_count:
                raise self._error(column.is_null().to_numpy(), f"has no {name!r}; drop such rows")
        weights = types = None
        names: Any = ()
        if self.columns.weight >= 0:
            weights = self._weights(table.column(2))
        if self.columns.type >= 0:
            types, names = self._encoded(self._texts(table, self.wanted[-1]).chunks)
        sides = [
            self._texts(table, name) if is_text else self._integers(table, name)
            for name, is_text in zip(self.wanted, self.are_texts, strict=False)
        ]
        if self.are_texts[0] == self.are_texts[1]:
            codes, labels = self._encoded([chunk for side in sides for chunk in side.chunks])
        else:  # 7 and "7" are different nodes
            (codes, labels), (others, more) = (self._encoded(side.chunks) for side in sides)
            codes = np.concatenate([codes, others + np.int32(len(labels))])
            labels = concatenate_labels(labels, more)
        del parts, table, sides, batch  # a large table takes more than its edges
        check_budget(self.what, need + _BYTES_PER_LABEL * len(labels), budget)
        # Number the nodes in the order of the rows, source before target.
        ends = codes.reshape(2, -1).T
        seen = np.empty(len(labels), dtype=np.int64)
        for start in reversed(range(0, count, _BATCH)):
            some = ends[start : start + _BATCH].reshape(-1)
            seen[some[::-1]] = np.arange(2 * start, 2 * start + len(some))[::-1]
        order = np.argsort(seen)
        number = np.empty(len(labels), dtype=np.int32)
        number[order] = np.arange(len(labels), dtype=np.int32)
        return EdgeRows(number[ends], labels[order], weights, types, list(names))

    def _encoded(self, chunks: list[Any]) -> tuple[Int32Array, AnyArray]:
        """Return the position of each value among the distinct values, and the distinct values."""
        encoded = self.pa.chunked_array(chunks).dictionary_encode()
        codes = np.concatenate([chunk.indices.to_numpy() for chunk in encoded.chunks])
        values = encoded.chunk(0).dictionary
        if self.pa.types.is_integer(values.type):
            return codes, values.to_numpy()
        return codes, np.array(values.to_pylist(), dtype=object)

    def _integers(self, table: Any, name: str) -> Any:
        column = table.column(name)
        try:
            if self.pa.types.is_floating(column.type):
                # NaN is what pandas has for a missing number.
                missing = np.isnan(column.to_numpy())
                if missing.any():
                    raise self._error(missing, f"has no {name!r}; drop such rows")
            return column.cast(self.pa.int64())
        except self.pa.ArrowInvalid:
            raise InputError(
                f"{self.what} has {column.type} values in {name!r}; not all are 64-bit integers. "
                "Store ids as text."
            ) from None

    def _texts(self, table: Any, name: str) -> Any:
        """Return a column as strings, each of which must be UTF-8 and not empty."""
        column = table.column(name)
        try:
            column = column.cast(self.pa.large_string())
        except self.pa.ArrowNotImplementedError:  # views, in older releases
            column = self.pa.chunked_array(
                [self.pa.array(column.to_pylist(), self.pa.large_string())]
            )
        empty = self.pa.compute.binary_length(column).to_numpy() == 0
        if empty.any():
            raise self._error(empty, f"has nothing in {name!r}; fill it in or drop such rows")
        try:
            column.validate(full=True)  # Parquet does not promise that strings are UTF-8
        except self.pa.ArrowInvalid:
            raw = column.cast(self.pa.large_binary()).to_pylist()
            bad = [string.decode(errors="ignore").encode() != string for string in raw]
            raise self._error(bad, f"has bytes in {name!r} that are not UTF-8 text") from None
        return column

    def _weights(self, column: Any) -> Float64Array:
        try:
            values = np.asarray(column.cast(self.pa.float64()).to_numpy())
        except (self.pa.ArrowInvalid, self.pa.ArrowNotImplementedError) as error:
            raise InputError(f"{self.what} has weights that are not numbers: {error}.") from None
        bad = ~np.isfinite(values)
        if bad.any():
            problem = f"has the weight {values[bad.argmax()]}; weights must be finite"
            raise self._error(bad, problem)
        return values

    def _error(self, bad: Any, problem: str) -> InputError:
        what = self.what if self.what[0] != "T" else "the table"
        return InputError(f"Row {int(np.argmax(bad))} of {what} {problem}.")
