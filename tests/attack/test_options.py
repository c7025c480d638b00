"""Odd values for every option: a sentence or a result, never a bug, a hang or an empty promise."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from typer.models import OptionInfo

from .forked import Outcome, here, run, suspects

# What the option is added to; every command of `atp` is here (tested below).
COMMANDS = {
    "cycles": "cycles {w}/graph.txt",
    "reach": "reach {w}/graph.txt 1 2",
    "embed": "embed {w}/graph.txt --dim 4 --max-iter 1 -o {d}/out.npz",
    "tune": "tune {w}/graph.txt --dims 2 --penalties 0.1",
    "model score": "model score {w}/model.npz 1 2",
    "model top": "model top {w}/model.npz 1",
    "model info": "model info {w}/model.npz",
    "model add": "model add {w}/model.npz {w}/graph.txt -o {d}/out.npz",
    "info": "info {w}/model.npz",
    "model export": "model export {w}/model.npz --format csv -o {d}/out.csv",
    "levels": "levels {w}/graph.txt",
    "plot": "plot {w}/graph.txt -o {d}/out.svg",
    "links compare": "links compare {w}/graph.txt --methods common-neighbors",
    "links fit": "links fit {w}/graph.txt -o {d}/out.npz --dim 2",
    "links score": "links score {w}/links.npz 1 2",
    "links recommend": "links recommend {w}/links.npz 1",
    "links top": "links top {w}/links.npz",
    "qa ingest": "qa ingest {w}/dump2 -o {d}/out",
    "qa stats": "qa stats {w}/site",
    "qa train": "qa train {w}/site -o {d}/out",
    "qa difficulty": "qa difficulty {w}/site --methods number-of-answers",
    "qa experts": "qa experts {w}/advisor",
    "qa route": "qa route {w}/advisor --title how",
    "qa evaluate": "qa evaluate {w}/site --methods bm25",
    "qa load": "qa load {w}/site --spread 0",
    "data list": "data list",
    "data generate cycles": "data generate cycles --nodes 20 --edges 60 --planted 3 -o {d}/out.txt",
    "data generate gnm": "data generate gnm --nodes 20 --edges 60 -o {d}/out.txt",
    "data generate dag": "data generate dag --nodes 20 --edges 60 -o {d}/out.txt",
    "data generate citation": "data generate citation --nodes 20 --edges 30 -o {d}/out.txt",
    "data generate community": "data generate community --questions 20 --users 9 -o {d}/out",
}
HUGE = str(2**62)
NUMBERS = ("nan", "inf", "-inf", "-1", "0", "1e308", HUGE, "99999999999999999999")
TEXTS = ("", "nan", "-1", "99999999999999999999", "\x1b[31m", "\udcff", "a" * 300)
WITHOUT_NUMBERS = {"data fetch", "data imports", "data path"}
# Commands that run for ever, with a folder of tests of their own (qa/tests/service).
ELSEWHERE = ("server ",)


def commands() -> Iterator[tuple[str, Any]]:
    """Every command of ``atp``: its name and its function."""
    from atpgraph.cli._app import app

    todo = [("", app)]
    while todo:
        above, group = todo.pop()
        todo += [
            (f"{above} {inner.name}".strip(), inner.typer_instance)
            for inner in group.registered_groups
        ]
        for info in group.registered_commands:
            name = info.name or info.callback.__name__.replace("_", "-")
            yield f"{above} {name}".strip(), info.callback


def odd_options() -> Iterator[tuple[str, str, str, bool]]:
    """Command, option, an odd value, and whether it should be a number."""
    for command, function in commands():
        hints = get_type_hints(function, include_extras=True)
        for name, hint in hints.items():
            inner = get_args(hint)
            kinds = {hint, *inner, *(get_args(inner[0]) if inner else ())}
            info = next((x for x in inner if isinstance(x, OptionInfo)), None)
            if info is None or bool in kinds:
                continue
            option = next(iter(info.param_decls or ()), "--" + name.replace("_", "-"))
            numeric = bool(kinds & {int, float})
            for value in NUMBERS if numeric else TEXTS:
                yield command, option, value, numeric


Case = tuple[str, str, str, bool]


def complaints(world: Path, scratch: Path, cases: Sequence[Case]) -> Iterator[str]:
    """What is wrong with how commands take odd values, for those where something is."""

    def in_turn(number: int) -> str:
        folder = scratch / f"in-turn-{number}"
        folder.mkdir()
        os.chdir(folder)
        return _complaint(world, folder, cases[number], here)

    for number in suspects(range(len(cases)), in_turn):
        folder = scratch / f"alone-{number}"
        folder.mkdir()
        alone = partial(run, setup=partial(os.chdir, folder))
        if wrong := _complaint(world, folder, cases[number], alone):
            yield wrong


def _complaint(world: Path, folder: Path, case: Case, run: Callable[..., Outcome]) -> str:
    name, option, value, numeric = case
    typed = COMMANDS[name].format(w=world, d=folder).split()
    said = [option, value] if len(option) == 2 else [f"{option}={value}"]
    done = run(*typed, *said)
    wrong = done.complaint()
    if not wrong and done.code == 0 and numeric and not math.isfinite(float(value)):
        wrong = f"accepted: {done.stdout[:200]}"
    return wrong and f"{name} {option}={value!r}: {wrong}"


def test_every_command_is_attacked() -> None:
    names = {name for name, _ in commands() if not name.startswith(ELSEWHERE)}
    assert names - WITHOUT_NUMBERS == set(COMMANDS)


@pytest.mark.parametrize("value", ["nan", "99999999999999999999", "\udcff"])
def test_odd_values_of_options(world, tmp_path, value) -> None:
    """Some here; all odd values of all options are a part of `make attack`."""
    cases = [case for case in odd_options() if case[2] == value and case[0] in COMMANDS]
    wrong = list(complaints(world, tmp_path, cases))
    assert not wrong, "\n".join(wrong)
