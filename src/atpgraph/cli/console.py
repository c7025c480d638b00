"""Output, progress and errors of all commands.

Results go to standard output, everything else to standard error. See the package docstring for
how a command uses this.
"""

from __future__ import annotations

import contextlib
import json as jsonlib
import logging
import math
import os
import shlex
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from atpgraph.errors import AtpError, InputError
from atpgraph.util.files import output_taken
from atpgraph.util.progress import progress_display, say, visible
from atpgraph.util.threads import undisturbed

if TYPE_CHECKING:
    from rich.table import Table

    from atpgraph.graph.digraph import DiGraph

LABELS = ("source", "target", "node")  # keys of nodes: a number there is a name


class Session:
    """The output of one running command."""

    def __init__(self, *, json: bool, quiet: bool) -> None:
        self.json = json
        self.quiet = quiet
        self._started = time.perf_counter()
        self._payload: dict[str, Any] | None = None
        self._shown: tuple[str | Table, ...] = ()

    @property
    def seconds(self) -> float:
        """Seconds since the command began."""
        return round(time.perf_counter() - self._started, 3)

    def note(self, text: str) -> None:
        """Print something that is not a result."""
        if not self.quiet:
            say(f"atp: {text}")

    def result(
        self,
        payload: dict[str, Any],
        *shown: str | Table,
        report: Path | None = None,
        render: Callable[[str], str] | None = None,
    ) -> None:
        """Set the result: `payload` with ``--json``, else the lines and tables in `shown`.

        It is printed when the session ends, after the progress bars are gone: on standard output,
        or on standard error if a file was written to standard output ("-"). If `report` is a
        folder, a page with the same lines and tables is written there, or the page that `render`
        returns for the typed command.
        """
        if report is not None:
            from atpgraph.report import page_of_tables, write_index

            command = "atp " + shlex.join(sys.argv[1:])
            html = render(command) if render else page_of_tables(shown, command)
            payload = payload | {"report": write_index(report, html)}
            self.note(f"report written to {payload['report']}")
        self._payload, self._shown = payload, shown

    def _print_all(self) -> None:
        taken = output_taken.get()
        if self._payload is None or (taken and self.quiet):
            return
        try:
            with contextlib.redirect_stdout(sys.stderr if taken else sys.stdout):
                self._print(self._payload)
                sys.stdout.flush()
        except (OSError, ValueError, AttributeError) as error:  # full, closed, or not there at all
            if taken:  # the result is written; if nobody can be told, that is no error
                return
            if isinstance(error, BrokenPipeError):
                raise
            drop_output()
            why = error.strerror if isinstance(error, OSError) else "it is closed"
            raise InputError(f"Cannot write to standard output: {why}.") from error

    def _print(self, payload: dict[str, Any]) -> None:
        if self.json:
            # ASCII only, so that it prints whatever the encoding of the terminal.
            print(jsonlib.dumps(json_ready(payload), indent=2, allow_nan=False))
            return
        for item in self._shown:
            if isinstance(item, str):
                print(visible(item, keep="\n"))
            else:
                print(_rendered(item), end="")


def table(
    columns: Sequence[str] | Mapping[str, str], rows: Iterable[Any], title: str = ""
) -> Table:
    """Return a table for :meth:`Session.result`; numbers are right-aligned, with thousands
    separators.

    Rows are sequences or dictionaries. For dictionaries, `columns` maps headings to keys, or lists
    the keys.
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    rows = list(rows)
    if rows and isinstance(rows[0], Mapping):
        keys = columns.values() if isinstance(columns, Mapping) else columns
        rows = [[str(row[k]) if k in LABELS else row[k] for k in keys] for row in rows]
    result = Table(
        title=Text(visible(title)) if title else None, box=box.SIMPLE_HEAD, title_justify="left"
    )
    texts = []
    for position, name in enumerate(columns):
        cells, numeric = _column([row[position] for row in rows])
        texts.append(cells)
        result.add_column(Text(visible(name, "\n")), justify="right" if numeric else "left")
    for row in zip(*texts, strict=True):
        result.add_row(*map(Text, row))
    return result


def named(path: object, stream: str = "standard input") -> object:
    """Return the name of a file in messages."""
    return stream if str(path) == "-" else path


def sizes(graph: DiGraph) -> dict[str, int]:
    """Return the numbers of nodes and edges, for ``--json``."""
    return {"nodes": graph.n_nodes, "edges": graph.n_edges}


def sized(path: object, graph: DiGraph, stream: str = "standard input") -> str:
    """Return the name of a graph and its size, as text."""
    return f"{named(path, stream)}: {graph.n_nodes:,} nodes, {graph.n_edges:,} edges"


def facts_table(name: object, facts: Mapping[str, Any]) -> Table:
    """Return a table of names and values under the heading `name`; lists are left out."""
    shown = [
        [key.replace("_", " "), _column([value])[0][0]]
        for key, value in facts.items()
        if value is not None and not isinstance(value, (dict, list))
    ]
    return table(["", str(name)], shown)


def _column(values: list[Any]) -> tuple[list[str], bool]:
    """Return the cells of a column as text with equal decimals, and whether they are numbers."""
    plain = [value.item() if hasattr(value, "item") else value for value in values]
    numbers = [value for value in plain if isinstance(value, float) and math.isfinite(value)]
    largest = max(map(abs, numbers), default=0.0)
    decimals = min(max(3 - math.floor(math.log10(largest)), 0), 8) if largest else 0
    while decimals and all(f"{value:.{decimals}f}".endswith("0") for value in numbers):
        decimals -= 1
    kinds = {type(value) for value in plain if value is not None}
    return [_text(value, decimals) for value in plain], bool(kinds) and kinds <= {int, float}


def _text(value: object, decimals: int) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.{decimals}f}" if math.isfinite(value) else "–"
    return f"{value:,}" if isinstance(value, int) else visible(str(value))


def _rendered(item: Table) -> str:
    """Return the text of a table; Rich must not print it, since it exits on a closed pipe."""
    from rich.console import Console
    from rich.measure import measure_renderables

    console = Console(file=sys.stdout)
    if not console.is_terminal:  # never wrap or cut what another program will read
        wide = Console(file=sys.stdout, width=10_000)
        needed = measure_renderables(wide, wide.options, [item]).maximum
        console = Console(file=sys.stdout, width=max(80, needed), color_system=None)
    with console.capture() as capture:
        console.print(item)
    return capture.get()


def json_ready(value: Any) -> Any:
    """Return plain JSON values: NumPy scalars and arrays unpacked, NaN and infinity as null.

    Examples
    --------
    >>> json_ready({"auc": float("nan"), 3: (1, 2.5)})
    {'auc': None, '3': [1, 2.5]}
    """
    if isinstance(value, dict):
        return {str(key): json_ready(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [json_ready(item) for item in value]
    if hasattr(value, "tolist"):
        return json_ready(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    raise TypeError(f"{type(value).__name__} does not fit into JSON")


def drop_output() -> None:
    """Discard unprinted output, so that the interpreter does not fail to flush it."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Notes(logging.Handler):
    """Print the warnings of the library as notes of the command; errors keep their traceback."""

    def __init__(self, held: Session) -> None:
        super().__init__(logging.WARNING)
        self._held = held

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR and logging.lastResort is not None:
            logging.lastResort.handle(record)
        else:
            self._held.note(record.getMessage())


@contextlib.contextmanager
def session(*, json: bool = False, quiet: bool = False) -> Iterator[Session]:
    """Run the body of a command, show progress, and turn errors into a sentence and an exit code.

    With ``ATP_DEBUG=1`` in the environment, errors keep their traceback.
    """
    held = Session(json=json, quiet=quiet)
    output_taken.set(False)
    notes, logger = _Notes(held), logging.getLogger("atpgraph")
    logger.addHandler(notes)
    try:
        with contextlib.nullcontext() if quiet else progress_display():
            yield held
        held._print_all()
    except (typer.Exit, typer.Abort):
        raise
    except KeyboardInterrupt:
        with undisturbed():
            say("atp: interrupted")
        raise typer.Exit(130) from None
    except BrokenPipeError:  # the reader went away
        drop_output()
        raise typer.Exit(141) from None
    except Exception as error:
        if os.environ.get("ATP_DEBUG", "") not in ("", "0"):
            raise
        code, sentence = _outcome(error)
        say(f"atp: error: {sentence}")
        raise typer.Exit(code) from None
    finally:
        logger.removeHandler(notes)


def _outcome(error: Exception) -> tuple[int, str]:
    """Return the exit code and the sentence for an error."""
    if isinstance(error, AtpError):
        return error.exit_code, str(error)
    if isinstance(error, OSError):
        drop_output()
        about = f"{os.fsdecode(error.filename)}: " if error.filename is not None else ""
        return 2, f"{about}{error.strerror or error}."
    text = " ".join(str(error).split()) or "no message"
    if isinstance(error, MemoryError):
        return 3, f"There is not enough memory ({text}); use a smaller graph or a larger machine."
    return 1, (
        f"a bug in atpgraph, {type(error).__name__}: {text} "
        "(set ATP_DEBUG=1 and run again for the traceback to report)."
    )
