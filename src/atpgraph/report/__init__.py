"""Self-contained HTML reports: the page and its charts."""

from atpgraph.report.charts import (
    Bar,
    Line,
    bar_chart,
    figure,
    grid,
    legend,
    line_chart,
    method_colors,
)
from atpgraph.report.page import Section, page, quiet, table, write_index, write_page

__all__ = [
    "Bar",
    "Line",
    "Section",
    "bar_chart",
    "figure",
    "grid",
    "legend",
    "line_chart",
    "method_colors",
    "page",
    "quiet",
    "table",
    "write_index",
    "write_page",
]
