"""Self-contained HTML reports: the page and its charts."""

from atpgraph.report.charts import Bar, Line, Point, bar_chart, histogram, line_chart, scatter_chart
from atpgraph.report.distributions import Dots, column_chart, dot_chart
from atpgraph.report.page import Section, facts, page, table, write_index, write_page

__all__ = [
    "Bar",
    "Dots",
    "Line",
    "Point",
    "Section",
    "bar_chart",
    "column_chart",
    "dot_chart",
    "facts",
    "histogram",
    "line_chart",
    "page",
    "scatter_chart",
    "table",
    "write_index",
    "write_page",
]
