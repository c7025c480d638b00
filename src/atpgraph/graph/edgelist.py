"""Edge lists: one edge per line of text, plain or compressed, or a Parquet table."""

from __future__ import annotations

import os
from contextlib import closing
from typing import Literal

import numpy as np

from atpgraph.errors import InputError
from atpgraph.graph import _scan
from atpgraph.graph._collect import EdgeCollector
from atpgraph.graph._dialect import (
    PROBE,
    Columns,
    are_words,
    check_delimiter,
    choose_columns,
    first_record,
    line_end,
    split_record,
)
from atpgraph.graph._parquet import collect_table
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

Weights = Literal["auto"] | bool


def read_edgelist(
    path: str | os.PathLike[str],
    *,
    delimiter: str | None = None,
    header: bool | None = None,
    comments: str = "#%",
    weights: Weights = "auto",
    quotes: bool = True,
    memory: str | float | None = None,
) -> DiGraph:
    """Read a directed graph from a text file with one edge per line, or from a Parquet table.

    SNAP files, TSV and CSV are recognised, plain, gzipped or Zstandard (which needs the extra
    ``zstd``), in UTF-8. Each line holds a source, a target and perhaps a weight; further columns
    are ignored, parallel edges are merged and their weights added up, self-loops are kept. Nodes
    are numbered in the order of appearance. The file is read in pieces, never held as a whole.

    Of a Parquet table (extra ``parquet``) the columns source and target (or src/dst, from/to) are
    read, else the first two, and a column named weight; ids are integers or text.

    Ids are int64 if every id is an integer written the usual way, else all of them are text; ids
    with a leading zero or a plus are text, because "007" is not "7".

    Parameters
    ----------
    path : path
        File to read, ``"-"`` for standard input; what it is, is recognised by its content.
    delimiter : str, optional
        One character; ``" "`` means any run of spaces and tabs. Without it the first line
        decides: a tab, else the more frequent of comma and semicolon, else blanks.
    header : bool, optional
        Whether the first line names columns. Without it, it does if it has names such as
        source/target, src/dst or from/to, or if its ids are words and it is the only line whose
        ids are not integers or whose third field is not a number. Columns named source, target
        (or the like) and weight are found by name, in any order.
    comments : str
        Characters that make a line a comment when one of them comes first; ``""`` for none.
    weights : "auto", True or False
        "auto" takes the column named weight, else the third one: its numbers are weights; if it
        holds no number at all it is ignored; if only some fields are numbers, that is an error.
        True insists on weights, False ignores them.
    quotes : bool
        Whether a field that begins with a double quote ends at the next one, as in CSV.
    memory : str or number of bytes, optional
        Budget of reading, such as "4GB", by default half of what is free. About 12 bytes for an
        edge (36 with a weight) and 70 for a node.

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
    >>> _ = path.write_text("from,to,weight\\nann,bob,2\\nbob,carl,1\\nann,bob,3\\n")
    >>> graph = read_edgelist(path)
    >>> list(graph.edges()), graph.weights.tolist()
    ([('ann', 'bob'), ('bob', 'carl')], [5.0, 1.0])
    """
    check_delimiter(delimiter)
    if not comments.isascii():
        raise InputError(f"Comments begin with an ASCII character, not with {comments!r}.")
    with stage(f"reading {shown_name(path).name}"), closing(Source(path)) as source:
        edges = EdgeCollector(source.path, budget_bytes(memory))
        if source.is_parquet:
            collect_table(source.path, edges, bool(weights))
        else:
            _Reader(source, edges, delimiter, header, comments, weights, quotes).collect()
        return edges.graph()


def read_pairs(
    path: str | os.PathLike[str], *, memory: str | float | None = None
) -> tuple[AnyArray, AnyArray]:
    """Read pairs of labels in the order of the file, repeats included.

    The file is read as by :func:`read_edgelist`; columns after the second are ignored.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> path = Path(tempfile.mkdtemp()) / "pairs.txt"
    >>> _ = path.write_text("b a\\na b\\nb a\\n")
    >>> [side.tolist() for side in read_pairs(path)]
    [['b', 'a', 'b'], ['a', 'b', 'a']]
    """
    with closing(Source(path)) as source:
        edges = EdgeCollector(source.path, budget_bytes(memory))
        if source.is_parquet:
            collect_table(source.path, edges, False)
        else:
            _Reader(source, edges, None, None, "#%", False, True).collect()
        codes, labels = edges.rows()
    return labels[codes[:, 0]], labels[codes[:, 1]]


class _Reader:
    """One text on its way to a graph."""

    def __init__(
        self,
        source: Source,
        edges: EdgeCollector,
        delimiter: str | None,
        header: bool | None,
        comments: str,
        weights: Weights,
        quotes: bool,
    ) -> None:
        self.path, self.source, self.edges, self.weights = source.path, source, edges, weights
        self.block = max(_LEAST_BLOCK, min(_BLOCK, edges.budget // _AT_ONCE))
        self.blocks = source.blocks(self.block)
        self.text, self.start, record = self._beginning(comments)
        delimiter, names = split_record(record, delimiter, quotes)
        columns = choose_columns(names)
        if header is None and columns.named:
            header = True
        elif not header:
            columns = Columns(0, 1, -1, False)
        self.header = header
        self.weight_named = columns.weight >= 0
        if not self.weight_named and (columns.source, columns.target) == (0, 1):
            columns = columns._replace(weight=2)
        columns = columns if weights else columns._replace(weight=-1)
        if weights is True and columns.weight < 0:
            raise self._error(None, "has no column of weights")
        self.layout = Layout(delimiter, quotes, comments, columns)
        if header:
            self.start = line_end(self.text, self.start)
        # What the first row has for a weight, what the others have, the first that are no numbers.
        self.first_kind = _scan.WORD
        self.words = self.numbers = 0
        self.bad: list[tuple[int, int, str | None]] = []
        self.text_later = False  # whether an id after the first row is not an integer

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
                later = piece.lengths[1 if row == 0 else 0 :]
                self.text_later = self.text_later or bool((later >= 0).any())
                # Once a weight is missing there are none in the end, or an error.
                keep = len(piece.kinds) and self.words == 0
                self.edges.add(
                    piece.array, piece.ids, piece.lengths, piece.values if keep else None
                )
                if not keep:
                    self.edges.drop_weights()
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
            self.edges.drop_first()
            self.first_kind = _scan.SIMPLE
            self.bad = [problem for problem in self.bad if problem[0] > 0]
        elif self.first_kind == _scan.WORD:
            self.words += 1
        else:
            self.numbers += 1
        self._decide_about_weights()

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
        if not self.text_later:
            return True
        weighted = self.layout.columns.weight >= 0
        return weighted and self.first_kind == _scan.WORD and self.words == 0

    def _decide_about_weights(self) -> None:
        if self.layout.columns.weight < 0:
            return
        if self.weights == "auto" and not self.weight_named and not self.numbers:
            self.edges.drop_weights()
        elif self.bad:
            _, line, text = self.bad[0]
            remedy = "correct it, or pass weights=False to read_edgelist to ignore the column"
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
                "correct the line or pass the delimiter to read_edgelist",
            )
        problem = {
            _scan.OPEN_QUOTE: "a quoted field is never closed; close it or pass quotes=False to "
            "read_edgelist",
            _scan.AFTER_QUOTE: "text follows a closing quote; correct it or pass quotes=False to "
            "read_edgelist",
            _scan.EMPTY_ID: "the id of a node is empty; name both ends of the edge",
        }[piece.problem]
        return self._error(line, problem)

    def _not_text(self, line: int, byte: int) -> InputError:
        return InputError(
            f"{self.path}, line {line}: not UTF-8 text (byte 0x{byte:02x}); "
            "give a text file with one edge per line."
        )

    def _error(self, line: int | None, problem: str) -> InputError:
        if line is None:
            return InputError(f"{self.path} {problem}; pass weights=False to read_edgelist.")
        return InputError(f"{self.path}, line {line}: {problem}.")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:39] + "…")
