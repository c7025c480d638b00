"""Edge lists: one edge per line of text, plain or compressed, or a Parquet table."""

from __future__ import annotations

import os
import warnings
from contextlib import closing
from typing import Literal

import numpy as np

from atpgraph.errors import InputError
from atpgraph.graph import _scan
from atpgraph.graph._arrow import collect_parquet
from atpgraph.graph._collect import EdgeCollector
from atpgraph.graph._dialect import (
    OPTIONS,
    PROBE,
    Column,
    ColumnOptions,
    Columns,
    ambiguous,
    are_words,
    check_delimiter,
    choose_columns,
    first_record,
    line_end,
    split_record,
    starts_numbers,
)
from atpgraph.graph._pieces import (
    BYTES_PER_BYTE,
    LONG_LINE,
    LONGEST,
    NOT_TEXT,
    Layout,
    Piece,
    line_number,
    not_text,
    scanned,
)
from atpgraph.graph._source import Source, shown_name
from atpgraph.graph._write import write_edgelist
from atpgraph.graph.digraph import DiGraph
from atpgraph.util.arrays import AnyArray
from atpgraph.util.memory import budget_bytes
from atpgraph.util.progress import stage

__all__ = ["read_edgelist", "write_edgelist"]

_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_BLOCK = 1 << 22  # bytes read at a time
_LEAST_BLOCK = 1 << 16
_AT_ONCE = 256  # blocks that the budget has to have room for
_WEIGHT = "weight=, --weight"
PAIRS = "source and target in the first line"


def read_edgelist(
    path: str | os.PathLike[str],
    *,
    source: Column | None = None,
    target: Column | None = None,
    weight: Column | bool | None = None,
    type: Column | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    comments: str = "#%",
    quotes: bool = True,
    memory: str | float | None = None,
    weights: Literal["auto"] | bool | None = None,
) -> DiGraph:
    """Read a directed graph from a text file with one edge per line, or from a Parquet table.

    SNAP files, TSV and CSV are recognized, plain, gzipped or Zstandard (which needs the extra
    ``zstd``), in UTF-8; Parquet needs the extra ``parquet``. Parallel edges are merged and their
    weights added up, self-loops are kept. Nodes are numbered in the order of appearance. The file
    is read in pieces, never held as a whole.

    Without `source` and `target`, columns called source/target, src/dst, from/to or
    subject/object are the edges; else the only two columns beside the weight; else, in a text file
    without names, the first two if the third holds numbers. Anything else is ambiguous, and an
    error.

    Ids are int64 if every id is an integer written the usual way, else all of them are text; ids
    with a leading zero or a plus are text, because "007" is not "7".

    Parameters
    ----------
    path : path
        File to read, ``"-"`` for standard input; its content decides what it is.
    source, target : str or int, optional
        Columns of the edges: names, or numbers counted from 1.
    weight : str, int or bool, optional
        Column of the weights. Without it, the column called weight, or the third one of a text
        file if it holds numbers. False ignores weights, True insists on them.
    type : str or int, optional
        Column of the types of the edges, see :attr:`DiGraph.edge_types`.
    delimiter : str, optional
        One character; ``" "`` means any run of spaces and tabs. Without it the first line
        decides: a tab, else the more frequent of comma and semicolon, else blanks.
    header : bool, optional
        Whether the first line names columns. Without it, it does if a column is chosen by name,
        if it has names such as source/target, or if its ids are words and it is the only line
        whose ids are not integers or whose third field is not a number.
    comments : str
        Characters that make a line a comment when one of them comes first; ``""`` for none.
    quotes : bool
        Whether a field that begins with a double quote ends at the next one, as in CSV.
    memory : str or number of bytes, optional
        Budget of reading, such as "4GB", by default half of what is free. About 12 bytes for an
        edge (36 with a weight) and 70 for a node.
    weights : "auto", True or False
        Deprecated: use `weight`.

    Returns
    -------
    DiGraph

    Raises
    ------
    InputError
        In one sentence, with file and line, if the file cannot be read as an edge list.
    BudgetError
        If reading it would take more memory than allowed.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "votes.csv"
    >>> _ = path.write_text("when,by,for,n\\n2020,ann,bob,2\\n2021,bob,carl,1\\n2022,ann,bob,3\\n")
    >>> graph = read_edgelist(path, source="by", target="for", weight="n")
    >>> list(graph.edges()), graph.weights.tolist()
    ([('ann', 'bob'), ('bob', 'carl')], [5.0, 1.0])
    """
    if weights is not None:
        warnings.warn("weights is called weight now.", DeprecationWarning, stacklevel=2)
        weight = None if weights == "auto" else weights
    options = ColumnOptions(source, target, weight, type)
    options.check()
    check_delimiter(delimiter)
    if not comments.isascii():
        raise InputError(f"Comments begin with an ASCII character, not with {comments!r}.")
    with stage(f"reading {shown_name(path).name}"), closing(Source(path)) as file:
        edges = EdgeCollector(file.path, budget_bytes(memory), keep_integers=file.is_parquet)
        if file.is_parquet:
            collect_parquet(file.path, edges, options)
        else:
            _Reader(file, edges, options, delimiter, header, comments, quotes).collect()
        return edges.graph()


def read_pairs(
    path: str | os.PathLike[str], *, memory: str | float | None = None
) -> tuple[AnyArray, AnyArray]:
    """Read pairs of labels in the order of the file, repeats included.

    The file is read as by :func:`read_edgelist`, without weights.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "pairs.txt"
    >>> _ = path.write_text("b a\\na b\\nb a\\n")
    >>> [side.tolist() for side in read_pairs(path)]
    [['b', 'a', 'b'], ['a', 'b', 'a']]
    """
    with closing(Source(path)) as file:
        edges = EdgeCollector(file.path, budget_bytes(memory), keep_integers=file.is_parquet)
        options = ColumnOptions(weight=False)
        if file.is_parquet:
            collect_parquet(file.path, edges, options, PAIRS)
        else:
            _Reader(file, edges, options, remedy=PAIRS).collect()
        codes, labels = edges.rows()
    return labels[codes[:, 0]], labels[codes[:, 1]]


class _Reader:
    """One text on its way to a graph."""

    def __init__(
        self,
        source: Source,
        edges: EdgeCollector,
        options: ColumnOptions,
        delimiter: str | None = None,
        header: bool | None = None,
        comments: str = "#%",
        quotes: bool = True,
        remedy: str = OPTIONS,
    ) -> None:
        self.path, self.source, self.edges = source.path, source, edges
        self.options, self.remedy = options, remedy
        self.block = max(_LEAST_BLOCK, min(_BLOCK, edges.budget // _AT_ONCE))
        self.blocks = source.blocks(self.block)
        self.text, self.start, record = self._beginning(comments)
        delimiter, self.names = split_record(record, delimiter, quotes)
        if header is None and options.source is not None:
            # Chosen by number, the columns alone need not tell; any other may.
            _, second = first_record(self.text, line_end(self.text, self.start), comments)
            fields = split_record(second, delimiter, quotes)[1]
            header = starts_numbers(self.names, fields) or None
        self.header, columns = self._choose(header)
        self.layout = Layout(delimiter, quotes, comments, columns)
        if self.header:
            self.start = line_end(self.text, self.start)
        # What the first row has for a weight, what the others have, the first that are no numbers.
        self.first_kind = _scan.WORD
        self.words = self.numbers = 0
        self.bad: list[tuple[int, int, str | None]] = []
        # Whether a source, or a target, after the first row is not an integer.
        self.text_later = np.zeros(2, dtype=np.bool_)

    def _choose(self, header: bool | None) -> tuple[bool | None, Columns]:
        """Return whether there is a header, where that is known yet, and the columns to read."""
        names, options = self.names, self.options
        if options.names:
            if header is False:
                raise InputError(
                    f"{self.path} has no header to find {options.names[0]!r} in; give the numbers "
                    "of columns, counted from 1."
                )
            header = True
        columns = choose_columns(names, options)
        if header is None and (columns.named or (columns.weight >= 0 and options.weight is None)):
            header = True
        if header:
            if not columns.sure:
                raise ambiguous(str(self.path), names, self.remedy)
        else:
            columns = choose_columns([""] * len(names), options)
        self.weight_sure = columns.weight >= 0
        # The third of columns without names is a weight if it holds numbers. It is looked at even
        # if weights are to be ignored: words make it a column that could as well be an edge's.
        after = columns.target + 1
        free = columns.weight < 0 and columns.source + 1 == columns.target and columns.type != after
        if free and columns.source == 0 and options.source is None:
            columns = columns._replace(weight=after)
        if options.weight is True and columns.weight < 0:
            raise InputError(f"{self.path} has no column of weights; name one ({_WEIGHT}).")
        return header, columns

    def _beginning(self, comments: str) -> tuple[bytearray, int, bytes]:
        """The text up to the end of the first record at least, where that begins, and its bytes."""
        text = bytearray()
        more = True
        while more:
            wanted = 2 * len(text)
            while more and len(text) <= wanted:
                self.edges.check(2 * len(text))
                block = next(self.blocks, b"")
                more = bool(block)
                text += block
                if b"\0" in block and not text.startswith(_UTF16):
                    # No need to look for the end of the first line: /dev/zero has none.
                    where = text.index(b"\0")
                    raise self._not_text(line_number(text, where), 0)
            bom = len(_BOM) if text.startswith(_BOM) else 0
            start, record = first_record(text, bom, comments)
            if len(record) == PROBE and line_end(text, start) < len(text):
                break
            if len(text) - start > LONGEST:
                raise self._error(line_number(text, start), LONG_LINE)
        if not more and not text.strip():
            raise InputError(f"{self.path} is empty; give a file with one edge per line.")
        if text.startswith(_UTF16):
            raise InputError(f"{self.path} is UTF-16 text; save it as UTF-8.")
        where = not_text(text if not more else text[: text.rfind(b"\n") + 1])
        if where >= 0:
            raise self._not_text(line_number(text, where), text[where])
        if not record:
            raise InputError(
                f"{self.path} has no edges"
                + (", only comments" if text[bom:].strip() else "")
                + "; give a file with one edge per line."
            )
        return text, start, record

    def collect(self) -> None:
        """Read all edges, then decide whether the first row is a header."""
        done = line = row = 0
        pieces = scanned(self.text, self.start, self.blocks, self.layout, self._check)
        del self.text
        for piece in pieces:
            self._note_weights(piece, row, line)
            if len(piece.ids):
                self.text_later |= (piece.lengths[1 if row == 0 else 0 :] >= 0).any(axis=0)
                # Once a weight is missing there are none in the end, or an error.
                keep = len(piece.kinds) and self.words == 0 and self.options.weight is not False
                self.edges.add(
                    piece.array, piece.ids, piece.lengths, piece.values if keep else None
                )
                if not keep:
                    self.edges.drop_weights()
                if self.layout.columns.type >= 0:
                    self._add_types(piece, line)
            if piece.problem != _scan.OK:
                raise self._problem(piece, line)
            row += len(piece.ids)
            line += piece.line
            done += piece.position
            size = self.source.size
            self.edges.check(
                4 * BYTES_PER_BYTE * self.block, min(done / size, 1.0) if size else 1.0
            )
        if not row:
            raise InputError(f"{self.path} has a header and no edges; add one edge per line.")
        if self.header is None and self._first_row_is_header():
            # Numbers after two columns of text are weights; after numbers they may be anything.
            if not (self.layout.columns.sure or self.text_later.all()):
                raise ambiguous(str(self.path), self.names, self.remedy)
            self.edges.drop_first()
            self.first_kind = _scan.SIMPLE
            self.bad = [problem for problem in self.bad if problem[0] > 0]
        elif self.first_kind == _scan.WORD:
            self.words += 1
        else:
            self.numbers += 1
        self._decide_about_weights()

    def _add_types(self, piece: Piece, line: int) -> None:
        starts, ends = piece.extras[:, 2], piece.extras[:, 3]
        if (starts < 0).any():
            at = line + int(piece.lines[(starts < 0).argmax()]) + 1
            raise self._error(at, "the edge has no type; add one")
        self.edges.add_types(piece.array, starts, ends - starts)

    def _check(self, size: int) -> None:
        self.edges.check(2 * BYTES_PER_BYTE * size)

    def _note_weights(self, piece: Piece, row: int, line: int) -> None:
        """Count words and numbers, the first row apart, and remember the first that is bad."""
        if not len(piece.kinds):
            return
        words = piece.kinds == _scan.WORD
        later = words[1:] if row == 0 else words
        self.words += int(np.count_nonzero(later))
        self.numbers += len(later) - int(np.count_nonzero(later))
        if row == 0:
            self.first_kind = int(piece.kinds[0])
        if len(self.bad) < 2:
            bad = np.flatnonzero(words | (piece.kinds == _scan.NOT_FINITE))[: 2 - len(self.bad)]
            self.bad += [
                (row + int(at), line + int(piece.lines[at]) + 1, piece.weight(int(at)))
                for at in bad
            ]

    def _first_row_is_header(self) -> bool:
        """Whether the first row has words for ids, and alone has them, or a word for a weight."""
        numbering = self.edges.numbering
        if self.edges.n_rows < 2 or not are_words([numbering.text(c) for c in self.edges.first]):
            return False
        if not self.text_later.any():
            return True
        weighted = self.layout.columns.weight >= 0
        return weighted and self.first_kind == _scan.WORD and self.words == 0

    def _decide_about_weights(self) -> None:
        columns = self.layout.columns
        if columns.weight < 0:
            return
        if not self.weight_sure and not self.numbers:
            self.edges.drop_weights()
            # Words in a third column: if the ids are words as well, any two could be the edge.
            attributes = self.names[2:3] and self.names[2].startswith("{")  # NetworkX writes them
            if not (columns.sure or attributes) and self.edges.numbering.n_texts:
                raise ambiguous(str(self.path), self.names, self.remedy)
            if self.options.weight is True:
                raise InputError(f"{self.path} has no column of weights; name one ({_WEIGHT}).")
        elif self.bad and self.options.weight is not False:
            _, line, text = self.bad[0]
            remedy = "correct it, or ignore weights (weight=False, --no-weight)"
            if text is None:
                raise self._error(line, f"no weight, unlike other lines; {remedy}")
            raise self._error(line, f"the weight {_shown(text)} is not a finite number; {remedy}")

    def _problem(self, piece: Piece, before: int) -> InputError:
        line = before + piece.line + 1
        if piece.problem == NOT_TEXT:
            return self._not_text(line, piece.detail)
        if piece.problem == _scan.FEW_FIELDS:
            delimiter = self.layout.delimiter
            separator = {" ": "blanks", "\t": "tabs"}.get(delimiter, repr(delimiter))
            has = "one field" if piece.detail == 1 else f"{piece.detail} fields"
            needs = max(self.layout.columns[:2]) + 1
            return self._error(
                line,
                f"{has} where an edge needs {needs}, separated by {separator}; "
                "correct the line or name the delimiter (delimiter=, --delimiter)",
            )
        problem = {
            _scan.OPEN_QUOTE: "a quoted field is never closed; close it, or double the quotes "
            "inside it",
            _scan.AFTER_QUOTE: "text follows a closing quote; double the quotes inside a field",
            _scan.EMPTY_ID: "the id of a node is empty; name both ends of the edge",
        }[piece.problem]
        return self._error(line, problem)

    def _not_text(self, line: int, byte: int) -> InputError:
        return InputError(
            f"{self.path}, line {line}: not UTF-8 text (byte 0x{byte:02x}); "
            "give a text file with one edge per line."
        )

    def _error(self, line: int, problem: str) -> InputError:
        return InputError(f"{self.path}, line {line}: {problem}.")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:39] + "…")
