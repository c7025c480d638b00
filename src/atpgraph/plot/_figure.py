"""The figure that every plot returns; imported only where Matplotlib is needed."""

from __future__ import annotations

import io

import matplotlib.figure

_DPI = 110  # about the width of a notebook cell


class Figure(matplotlib.figure.Figure):
    """A Matplotlib figure that a notebook displays without ``%matplotlib inline``.

    IPython calls ``_repr_png_`` only if no backend has registered a formatter for figures, so a
    figure is never displayed twice.
    """

    def _repr_png_(self) -> bytes:
        """Return the figure as PNG."""
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=_DPI)
        return buffer.getvalue()
