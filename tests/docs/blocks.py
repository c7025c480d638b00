"""Fenced code blocks of Markdown pages, and how they are run.

``python`` and ``bash`` blocks run, page by page and in order: Python blocks of a page share their
names, all blocks share a folder. An ``output`` block right below one holds what it prints. A
comment on the line above a block says what is special about it:

- ``<!-- not run: REASON -->``
- ``<!-- needs MODULE ... -->``: run only where the modules are there
- ``<!-- exits N -->``: every command of the block ends with this exit code; what is compared is
  standard error

A block with the name of a file between two lines ``--8<--`` holds that file of the repository, here
as in the site.
"""

from __future__ import annotations

import contextlib
import doctest
import importlib.util
import io
import math
import os
import re
import shlex
import subprocess
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

import atpgraph

ROOT = Path(__file__).resolve().parent.parent.parent
RUN = ("python", "bash")
SHOWN = ("output", "text", "bibtex", "yaml", "toml", "html")
_FENCE = re.compile(r"^(\s*)```+\s*(\S*)(.*)$")
_MARK = re.compile(r"^\s*<!--\s*(not run|needs|exits)\b:?\s*(.*?)\s*-->\s*$")
_INCLUDED = re.compile(r"--8<--\n(.+)\n--8<--\n")
_SHELL = re.compile(r"[|<>&;$`*]")
_COMMENT = re.compile(r"\s#.*")
_CHECKER = doctest.OutputChecker()


@dataclass
class Block:
    """One fenced block."""

    page: str
    line: int  # of the fence, from 1
    language: str
    code: str
    mark: str = ""
    told: str = ""  # what the mark says
    output: str | None = None

    @property
    def place(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def runs(self) -> bool:
        """Whether it is meant to run, on a machine that has all it needs."""
        return self.language in RUN and self.mark != "not run"

    @property
    def missing(self) -> str:
        """The modules it needs and this machine does not have."""
        wanted = self.told.split() if self.mark == "needs" else []
        return ", ".join(name for name in wanted if importlib.util.find_spec(name) is None)


def blocks(path: Path, page: str) -> list[Block]:
    """All fenced blocks of a page; output blocks are attached to what they are the output of."""
    lines = path.read_text(encoding="utf-8").splitlines()
    found: list[Block] = []
    above = ""  # the last line that is not blank
    at = 0
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        if fence is None:
            above = lines[at] if lines[at].strip() else above
            at += 1
            continue
        start = at
        at += 1
        while at < len(lines) and lines[at].strip() != "```":
            at += 1
        code = textwrap.dedent("\n".join(lines[start + 1 : at])) + "\n"
        included = _INCLUDED.fullmatch(code)
        if included is not None:
            code = (ROOT / included[1]).read_text(encoding="utf-8")
        mark = _MARK.match(above)
        block = Block(page, start + 1, fence[2], code)
        if mark is not None:
            block.mark, block.told = mark[1], mark[2]
        if block.language == "output":
            if not found or above != "```":
                raise AssertionError(f"{block.place}: an output block stands below no other block")
            found[-1].output = code
        else:
            found.append(block)
        above = "```"
        at += 1
    return found


@dataclass
class Runner:
    """Runs the blocks of one page in one folder."""

    folder: Path
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "__main__"})

    def run(self, block: Block) -> None:
        """Run a block; an AssertionError says what is not as the page says."""
        printed = self.python(block) if block.language == "python" else self.bash(block)
        if block.output is not None and not same(block.output, printed):
            raise AssertionError(
                f"{block.place} prints\n{textwrap.indent(printed, '    ')}\nand the page says\n"
                f"{textwrap.indent(block.output, '    ')}"
            )

    def python(self, block: Block) -> str:
        # Blank lines first, so that a traceback names the line of the page.
        source = compile("\n" * block.line + block.code, block.page, "exec")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(source, self.names)
        return printed.getvalue()

    def bash(self, block: Block) -> str:
        expected = int(block.told) if block.mark == "exits" else 0
        printed = ""
        for command in commands(block.code):
            code, out, err = self.command(command)
            if code != expected:
                raise AssertionError(
                    f"{block.place}: {command!r} exits with {code}, not {expected}:\n{out}{err}"
                )
            printed += err if expected else out
        return printed

    def command(self, command: str) -> tuple[int, str, str]:
        """Exit code, standard output and standard error of a command.

        ``atp``, alone or in a plain pipe, runs in this process, which saves the imports; anything
        else in a shell, where ``atp`` is the command of this checkout.
        """
        typed, *into = command.rsplit(" > ", 1)
        typed, *source = typed.split(" < ", 1)
        stages = [_COMMENT.sub("", stage) for stage in typed.split(" | ")]
        plain = not _SHELL.search("".join([*stages, *source, *into]))
        if not plain or not any(stage.startswith("atp ") for stage in stages):
            return self.shell(command)
        data = (self.folder / source[0].strip()).read_bytes() if source else b""
        code, errors = 0, ""
        for stage in stages:
            if stage.startswith("atp "):
                from atpgraph.cli._app import app

                words = shlex.split(stage)[1:]
                result = CliRunner().invoke(app, words, input=data, prog_name="atp")
                code, data = code or result.exit_code, result.stdout_bytes
                errors += result.stderr
            else:
                done = subprocess.run(
                    ["bash", "-c", stage], cwd=self.folder, input=data, capture_output=True
                )
                code, data = code or done.returncode, done.stdout
                errors += done.stderr.decode()
        if into:
            (self.folder / into[0].strip()).write_bytes(data)
            data = b""
        return code, data.decode(), errors

    def shell(self, command: str) -> tuple[int, str, str]:
        """Run a command in a shell."""
        shim = self.folder / ".bin" / "atp"
        if not shim.exists():
            shim.parent.mkdir()
            here = Path(atpgraph.__file__).resolve().parent.parent
            shim.write_text(
                f'#!/bin/sh\nPYTHONPATH="{here}" exec "{sys.executable}" -m atpgraph "$@"\n'
            )
            shim.chmod(0o755)
        path = os.pathsep.join([str(shim.parent), os.environ.get("PATH", "")])
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=self.folder,
            env=os.environ | {"PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout, done.stderr


def commands(code: str) -> list[str]:
    """The commands of a shell block: one a line, unless it goes on or text for it follows."""
    if "<<" in code:
        return [code]
    joined = code.replace("\\\n", " ")
    return [line for line in joined.splitlines() if line.strip() and not line.startswith("#")]


def same(expected: str, printed: str) -> bool:
    """Whether the output is as told: white space aside, ``...`` for anything.

    Where ``...`` stands for single words at most, as for the seconds in a table, decimal fractions
    may differ by a hundredth of their size or by 0.01: processors round differently.
    """
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    if _CHECKER.check_output(expected, printed, options):
        return True
    ours, theirs = expected.split(), printed.split()
    return len(ours) == len(theirs) and all(map(_close, ours, theirs))


def _close(told: str, found: str) -> bool:
    if told in (found, "...") or (set(told) == set(found) == {"─"}):
        return True
    if "." not in told:
        return False
    try:
        ours, theirs = (float(word.strip("±%,:;()")) for word in (told, found))
        return math.isclose(ours, theirs, rel_tol=0.01, abs_tol=0.01 + 1e-9)  # 0.20 and 0.19 pass
    except ValueError:
        return False
