"""The tests of a file run in one process, also where several processes test at once."""

from __future__ import annotations

import os

import pytest


@pytest.mark.parametrize("number", range(4))
def test_the_tests_of_a_file_share_a_process(
    number: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # shared by all processes of this run
    file = folder / "grouping.txt"
    with file.open("a", encoding="ascii") as opened:
        opened.write(f"{os.getpid()}\n")
    assert set(file.read_text(encoding="ascii").split()) == {str(os.getpid())}
