"""Show the Sphinx roles of our docstrings as code: ``:func:`name``` becomes ```name```."""

from __future__ import annotations

import re
from typing import Any

import griffe

_ROLE = re.compile(r":(?:func|class|meth|mod|data|attr):`~?([^`]+)`")


class Roles(griffe.Extension):
    """Rewrites every docstring once, when it is loaded."""

    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = _ROLE.sub(r"`\1`", obj.docstring.value)
