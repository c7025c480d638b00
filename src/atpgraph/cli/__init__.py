"""The command ``atp``: thin commands over the library.

To add a command, write a function whose parameters are the options and list it in ``cli/_app.py``.
An option that several commands share is a type in :mod:`atpgraph.cli.options`; any other has an
``opt(...)`` as its default. The first parameter is ``out``, a
:class:`~atpgraph.cli.console.Session`; a parameter ``reading`` stands for the options that say how
to read a graph. The command ends with one ``out.result(payload, table)``: ``--json`` prints the
payload, otherwise the table is printed. The session also shows progress and turns errors into one
sentence. Import modules that load NumPy or Numba inside the function, or use it as
``atpgraph.NAME``, so that ``atp --help`` stays fast.
"""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import signal
import sys


def run() -> None:
    """Run :func:`main`, and after Ctrl-C exit at once.

    Freeing the memory of a long job can take seconds.
    """
    try:
        main()
    except SystemExit as stop:
        if stop.code != 130:
            raise
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()
        os._exit(130)


def main() -> None:
    """Run the command line in this process."""
    for number in range(3):  # or a file of ours would get the number of a closed stream
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):  # a label no terminal can show is not an error
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        from atpgraph.cli._app import app

        app(prog_name="atp")
    except KeyboardInterrupt:  # before or after a command's own session
        sys.exit(130)
    except OSError as error:  # help or version into a full disk
        from atpgraph.cli.console import drop_output
        from atpgraph.util.progress import say

        drop_output()  # else the interpreter tries once more when it ends
        say(f"atp: error: Cannot write to standard output: {error.strerror}.")
        sys.exit(2)
