"""Columns as a file that other tools read: CSV or Parquet."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy.typing as npt

from atpgraph.errors import InputError
from atpgraph.util.files import atomic_path
from atpgraph_qa.data.arrow import load_arrow


def write_columns(path: str | os.PathLike[str], columns: Mapping[str, npt.ArrayLike]) -> None:
    """Write columns of equal length to a ``.csv`` or ``.parquet`` file.

    Parameters
    ----------
    path : path
        The ending decides the format.
    columns : mapping
        Values by column name, in the order of the file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "difficulty.csv"
    ...     write_columns(file, {"question": [7, 9], "level": [1.5, 2.0]})
    ...     print(file.read_text())
    "question","level"
    7,1.5
    9,2
    <BLANKLINE>
    """
    target = Path(path)
    if target.suffix not in (".csv", ".parquet"):
        raise InputError(f"{target} ends in neither .csv nor .parquet: name one of the two.")
    arrow, _ = load_arrow()
    import pyarrow.csv
    import pyarrow.parquet

    rows = arrow.table(dict(columns))
    write = pyarrow.csv.write_csv if target.suffix == ".csv" else pyarrow.parquet.write_table
    # A file, not its name: Arrow takes only names that are UTF-8.
    with atomic_path(target) as temporary, temporary.open("wb") as file:
        write(rows, file)
