"""Small repairs of docstrings for the API reference.

- The roles of Sphinx are shown as code: ``:func:`name``` becomes ```name```.
- Parameters described together (``kernel, c``) are listed one by one. Griffe would show the type
  and the default of the first for all of them.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_ROLE = re.compile(r":(?:func|class|meth|mod|data|attr):`~?([^`]+)`")
_TOGETHER = re.compile(r"(?m)^(\w+(?:, \w+)+)( : .*)?\n((?:    .*\n?)+)")


def _one_by_one(found: re.Match[str]) -> str:
    names, kind, text = found[1].split(", "), found[2] or "", found[3].rstrip("\n")
    return "".join(f"{name}{kind}\n{text}\n" for name in names)


class Roles(griffe.Extension):
    """Rewrites every docstring once, when it is loaded."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            text = _ROLE.sub(r"`\1`", obj.docstring.value)
            obj.docstring.value = _TOGETHER.sub(_one_by_one, text)
